"""A REST client of an exported model: nested JSON with nulls in, predictions out.

It trains and saves a model, starts `rest_server.py` in a process of its own, and asks it.
The same client works with TensorFlow Serving, which has the same interface.

    $ python examples/serving/rest_client.py
"""

import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
from late_orders import NEW, saved_model

import extensor as xt

SERVER = Path(__file__).with_name("rest_server.py")


def ask(url, inputs):
    """Returns the outputs of a server for named tensors."""
    lists = {name: tensor.numpy().tolist() for name, tensor in inputs.items()}
    body = json.dumps({"inputs": lists}, default=bytes.decode).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["outputs"]


def main():
    path = Path(tempfile.mkdtemp(), "late", "1")
    model = saved_model(path)
    server = subprocess.Popen(
        [sys.executable, SERVER, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1/models/late:predict"
        client = xt.serving.load_client(path)  # reads one small file, not the model
        request = client.encode(NEW)
        print("tensors:", *request)
        [output] = client.outputs.components  # a single output has no name in the answer
        late = client.decode({output.name: ask(url, request)}).numpy()[:, 0]
        print("late:", [f"{share:.2f}" for share in late])
        try:
            ask(url, {name: tensor for name, tensor in request.items() if "city" not in name})
        except urllib.error.HTTPError as error:
            print("a request without a field:", error.code, json.load(error)["error"])
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    here = model.predict(NEW, verbose=0)[:, 0]
    print("largest difference from the model here:", float(np.abs(late - here).max().round(5)))
    return late.tolist(), here.tolist()


if __name__ == "__main__":
    main()
