"""An engineer with nested JSON: from a file of their own to a model that is trained and served.

The lines are those of the README and of the page about unions, edited for another file: other
fields, nulls, a label with nulls, and a field that is a bool or a string.
"""

import json
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

# What another process does with the model.
LOAD = """
import json
import keras
import extensor
model = keras.models.load_model("escalated.keras")
print(json.dumps(model.predict(json.load(open("new.json")), verbose=0)[:, 0].tolist()))
"""


def error_of(call):
    """Returns the message of the error that a user would see."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def main():
    random = np.random.default_rng(0)
    with open("tickets.jsonl", "w") as file:
        for number in range(200):
            author = None if number % 17 == 0 else {"name": f"user{number % 5}", "age": 30}
            if author and number % 7 == 0:
                author["age"] = None
            messages = [
                {"words": int(random.integers(1, 90)), "tags": ["urgent"] * int(random.integers(2))}
                for _ in range(random.integers(0, 4))
            ]
            urgent = any(message["tags"] for message in messages)
            label = None if number % 11 == 0 else int(urgent)
            paid = ["never", True, False, "late"][number % 4]
            ticket = {"author": author, "messages": messages, "paid": paid, "escalated": label}
            file.write(json.dumps(ticket) + "\n")

    # Without a choice for nulls there is an error that names the field, and the choice.
    error = error_of(lambda: xt.read_json("tickets.jsonl"))
    assert "author" in error
    assert 'nulls={"author": "mask"' in error

    error = error_of(lambda: xt.read_json("tickets.jsonl", nulls="mask"))
    assert "paid, line 2 of tickets.jsonl: expected a string" in error
    assert 'conflicts="union"' in error

    tickets = xt.read_json("tickets.jsonl", nulls="mask", conflicts="union")
    print(xt.struct.tree(tickets))
    batches = tf.data.Dataset.from_tensor_slices(
        (tickets.without("escalated"), tickets["escalated"])
    )
    batches = batches.batch(20)

    features = xt.keras.layers.RecordFeatures()
    features.adapt(batches.map(lambda ticket, escalated: ticket))
    error = error_of(lambda: xt.keras.Input(batches.element_spec))
    assert "element_spec[0]" in error
    ticket = xt.keras.Input(batches.element_spec[0])
    model = xt.keras.Model(ticket, keras.layers.Dense(1, "sigmoid")(features(ticket)))
    model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=["accuracy"])
    history = model.fit(batches, epochs=10, verbose=0).history
    assert history["accuracy"][-1] > 0.9, history

    new = [
        {"author": None, "messages": [{"words": 3, "tags": ["urgent"]}], "paid": True},
        {"author": {"name": "user1", "age": None}, "messages": [], "paid": "late"},
    ]
    here = model.predict(new, verbose=0)

    model.save("escalated.keras")
    with open("new.json", "w") as file:
        json.dump(new, file)
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    np.testing.assert_allclose(json.loads(loaded.stdout), here[:, 0], rtol=1e-5)

    xt.serving.save(model, "escalated/1")
    server = tf.saved_model.load("escalated/1").signatures["serving_default"]
    client = xt.serving.load_client("escalated/1")
    served = client.decode(server(**client.encode(new)))
    np.testing.assert_allclose(served, here, rtol=1e-5)
    assert served.numpy().round()[:, 0].tolist() == [1.0, 0.0]

    # A wrong request names the field and the record.
    error = error_of(
        lambda: client.encode([{**new[0], "messages": [{"words": "many", "tags": []}]}])
    )
    assert "messages[*].words, record 0: expected" in error
    print("done")


if __name__ == "__main__":
    main()
