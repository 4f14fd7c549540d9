"""A platform engineer: files, statistics, a training that goes on, a server and its clients.

Each step is a process of its own, as on a platform: commands, trainer, server, client.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

TRAIN = """
import json, sys
import keras
import extensor as xt

stop_after = int(sys.argv[1])
keras.utils.set_random_seed(0)
nulls = {"user": "mask"}
shuffle = xt.data.Shuffle(seed=1, window=64)
visits = xt.data.parquet("visits.parquet", 16, nulls=nulls, shuffle=shuffle)
train = visits.map(lambda visit: (visit.without("bought"), visit["bought"]))
features = xt.keras.layers.RecordFeatures()
features.adapt(train.map(lambda visit, bought: visit))
visit = xt.keras.Input(train.element_spec[0])
model = xt.keras.Model(visit, keras.layers.Dense(1, "sigmoid")(features(visit)))
model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=["accuracy"])


class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch + 1 == stop_after:
            sys.exit(3)


backup = xt.keras.callbacks.BackupAndRestore("backup", train)
history = model.fit(train, epochs=6, verbose=0, callbacks=[backup, Stop()])
xt.serving.save(model, "bought/1")
print(json.dumps({"epochs": history.epoch, "accuracy": history.history["accuracy"][-1]}))
"""

CLIENT = """
import sys
from urllib.request import urlopen
import extensor as xt

client = xt.serving.load_client("bought/1")
body = client.encode_json(open("new.jsonl", "rb").read(), extra=["bought"])
open("request.json", "w").write(body)
with urlopen(sys.argv[1], body.encode()) as response:
    print(client.decode_json(response.read()).numpy().round()[:, 0].tolist())
"""


def run(*words, code=0):
    """Returns what a command prints."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout


def error_of(url, request):
    """Returns what a server answers to a request that it refuses."""
    try:
        urllib.request.urlopen(url, json.dumps(request).encode())
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]
    raise AssertionError("the request was answered")


def visit(number):
    views = [{"price": 5.0 * (number % 7), "tags": ["sale"] * (number % 2)}] * (number % 4)
    bought = int(bool(views) and number % 2)
    user = None if number % 9 == 0 else f"u{number % 5}"
    return {"user": user, "views": views, "bought": bought}


def write(path, numbers):
    Path(path).write_text("".join(json.dumps(visit(number)) + "\n" for number in numbers))


def main():
    # Files: what is in them, another format, and whether new ones drifted.
    write("visits.jsonl", range(200))
    write("new.jsonl", [1, 3, 4])
    assert "views[*].price" in run("-m", "extensor", "schema", "visits.jsonl")
    run("-m", "extensor", "convert", "visits.jsonl", "visits.parquet")
    assert "200 records" in run("-m", "extensor", "describe", "visits.parquet")
    run("-m", "extensor", "describe", "visits.parquet", "--compare", "visits.jsonl")

    # A training that is stopped goes on where it was.
    Path("train.py").write_text(TRAIN)
    run("train.py", "3", code=3)
    result = json.loads(run("train.py", "0"))
    assert result["epochs"] == [3, 4, 5], result
    assert result["accuracy"] > 0.9, result

    # The model, checked before it is served.
    report = run("-m", "extensor", "serve-check", "bought/1")
    assert "views__tags" in report

    # A server that has TensorFlow alone, and a client in a process of its own.
    server = subprocess.Popen(
        [sys.executable, "rest_server.py", "bought/1"], stdout=subprocess.PIPE, text=True
    )
    try:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/models/bought:predict"
        Path("client.py").write_text(CLIENT)
        assert run("client.py", url) == "[1.0, 1.0, 0.0]\n"
        wrong = json.loads(Path("request.json").read_text())
        wrong["inputs"].popitem()
        assert "missing inputs" in error_of(url, wrong)
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    print("done")


if __name__ == "__main__":
    main()
