"""A researcher in a notebook: look at records, complete paths, compute, group, train.

It uses the methods that a notebook calls: `_repr_html_` and `_ipython_key_completions_`.
"""

import pydoc

import keras
import numpy as np
import tensorflow as tf

import extensor as xt


def error_of(call):
    """Returns the message of the error that a user would see."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def main():
    random = np.random.default_rng(0)
    xt.write_parquet(
        xt.struct.constant(
            [
                {
                    "user": f"u{i % 7}",
                    "sessions": [
                        {"seconds": float(random.integers(1, 60)), "pages": ["home"] * (j + 1)}
                        for j in range(random.integers(0, 4))
                    ],
                }
                for i in range(60)
            ]
        ),
        "visits.parquet",
    )
    visits = xt.read_parquet("visits.parquet")

    # Look.
    assert "<table>" in visits._repr_html_()
    assert "<details" in tf.data.Dataset.from_tensors(visits).element_spec._repr_html_()
    assert visits._ipython_key_completions_() == [
        *("user", "sessions", "sessions.seconds", "sessions.pages")
    ]
    assert {"struct", "keras", "data", "types"} <= set(dir(xt))
    assert "field" in pydoc.render_doc(visits.with_updates)
    assert len(str(visits).splitlines()) < 10

    # A typing error is answered with the right name.
    error = error_of(lambda: visits["sessions.secnds"])
    assert "Did you mean seconds?" in error

    # Compute, as with tensors.
    total = tf.reduce_sum(visits["sessions.seconds"], axis=1)
    long = visits[total > 30.0]
    assert 0 < len(long) < len(visits)
    visits = visits.with_updates(total=total, count=visits["sessions"].row_lengths())
    assert visits["sessions", 0, 0:1, "pages"].shape[0] in (0, 1)
    assert visits[["user", "total"]].to_py()[0].keys() == {"user", "total"}

    # Train: the sum of the seconds of the sessions is the total.
    seconds = xt.keras.layers.ListPooling("sum")
    visit = xt.keras.Input(xt.spec_of(visits[:0]))
    pooled = keras.layers.Reshape([1])(seconds(visit["sessions.seconds"]))
    model = xt.keras.Model(visit, keras.layers.Dense(1, use_bias=False)(pooled))
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    model.fit(visits, visits["total"], epochs=60, verbose=0)
    assert abs(float(model.weights[0][0, 0]) - 1) < 0.1, model.weights
    print("done")


if __name__ == "__main__":
    main()
