"""An engineer with visits of a clinic in raw JSON: times, maps in lists, labels, and a server.

The lines are those of the first tutorial and of the page about JSON, edited for another file:
maps in records and in items of lists, a field that is a text, a list or null, a field that is a
number or a text, times that are text, and a field that a third of the records lack.
"""

import json
import pathlib
import random
import subprocess
import sys
from urllib.request import urlopen

import keras
import pyarrow as pa
import tensorflow as tf

import extensor as xt

LEVELS = {"routine": 72, "urgent": 95, "emergency": 125}  # and the pulse that goes with each

# What another process does with the model.
LOAD = """
import json
import keras
import extensor as xt
model = keras.models.load_model("triage.keras")
line = json.loads(open("visits.jsonl").readline())
del line["triage"]
visits = xt.spec_of(model.input).cast([line], times="text")
print(model.predict(visits, verbose=0)["triage"][0].decode())
"""


def visit(number):
    """Returns a visit, as the system of the clinic exports it."""
    level = random.choice(list(LEVELS))
    values = {"pulse": (random.gauss(LEVELS[level], 5), "bpm"), "temp": (37.5, "C")}
    found = {
        "visit_id": f"V{number:05d}",
        "admitted": f"2026-03-{1 + number % 28:02d}T08:15:00+02:00" if number % 7 else None,
        "patient": {"age": None if number % 11 == 0 else 40, "allergies": ["nuts"] * (number % 3)},
        "vitals": {name: {"value": value, "unit": unit} for name, (value, unit) in values.items()},
        "prescriptions": [
            {
                "drug": random.choice(["aspirin", "insulin"]),
                "dose": random.choice([5, 10.5, "2 puffs"]),
                "schedule": {day: ["08:00"] for day in random.sample(["mon", "tue", "wed"], 2)},
                "refills": random.choice([None, 0, 2]),
            }
            for _ in range(number % 4)
        ],
        "notes": random.choice(["stable", ["pain", "fever"], None]),
        "triage": level,
    }
    return {**found, "insurance": {"plan": "gold", "copay": None}} if number % 3 else found


def error_of(call):
    """Returns the message of the error that a user would see."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def main():
    random.seed(0)
    keras.utils.set_random_seed(0)
    lines = [json.dumps(visit(number)) for number in range(300)]
    pathlib.Path("visits.jsonl").write_text("\n".join(lines))

    error = error_of(lambda: xt.read_json("visits.jsonl"))
    assert 'nulls={"insurance": "mask"}' in error
    error = error_of(lambda: xt.read_json("visits.jsonl", nulls="auto"))
    assert 'conflicts="union"' in error
    maps = ["vitals", "prescriptions.schedule"]
    visits = xt.read_json("visits.jsonl", nulls="auto", conflicts="union", maps=maps)
    schema = xt.to_arrow(visits).schema
    place = schema.get_field_index("admitted")
    schema = schema.set(place, pa.field("admitted", pa.timestamp("s", "UTC")))
    visits = xt.read_json("visits.jsonl", schema=schema, nulls="auto")
    print(xt.struct.tree(visits))

    levels = sorted({name.decode() for name in visits["triage"].numpy()})
    label = keras.layers.StringLookup(vocabulary=levels, num_oov_indices=0)
    pairs = (visits.without("triage"), label(visits["triage"]))
    examples = tf.data.Dataset.from_tensor_slices(pairs)
    train, validation = examples.take(240).batch(20), examples.skip(240).batch(20)

    features = xt.keras.layers.RecordFeatures()
    features.adapt(train.map(lambda visit, level: visit.without("visit_id")))
    record = xt.keras.Input(train.element_spec[0])
    hidden = keras.layers.Dense(32, "relu")(features(record.without("visit_id")))
    scores = keras.layers.Dense(len(levels), "softmax")(hidden)
    model = xt.keras.Model(record, scores)
    model.compile(
        keras.optimizers.Adam(0.03), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(train, validation_data=validation, epochs=15, verbose=0)
    accuracy = model.evaluate(validation, return_dict=True, verbose=0)["accuracy"]
    assert accuracy > 0.6, accuracy  # a third by chance

    name_of = keras.layers.StringLookup(vocabulary=levels, num_oov_indices=0, invert=True)
    named = xt.keras.Model(
        model.input,
        {
            "triage": name_of(keras.ops.argmax(model.output, axis=1)),
            "score": keras.ops.max(scores, axis=1),
        },
    )
    raw = json.loads(lines[0])
    assert raw.pop("triage") in LEVELS
    late = {**raw, "admitted": "2026-03-01T08:15:00+02:00"}
    error = error_of(lambda: named.predict([late], verbose=0))
    assert "admitted, record 0: expected timestamp" in error
    assert 'times="text"' in error
    here = named.predict(xt.spec_of(named.input).cast([raw], times="text"), verbose=0)
    expected = here["triage"][0].decode()

    named.save("triage.keras")
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip() == expected

    xt.serving.save(named, "triage/1")
    command = [sys.executable, "rest_server.py", "triage/1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/models/triage:predict"
            client = xt.serving.load_client("triage/1")
            request = client.encode_json("\n".join(lines[:3]), extra=["triage"])
            with urlopen(url, request.encode()) as response:
                answer = client.decode_json(response.read())
            assert answer["triage"].numpy()[0].decode() == expected
            assert answer["score"].shape == (3,)
        finally:
            server.terminate()
    print("done")


if __name__ == "__main__":
    main()
