"""A gRPC client of an exported model: nested JSON with nulls in, predictions out.

It trains and saves a model, starts `grpc_server.py` in a process of its own, and asks it.
The messages are those of TensorFlow Serving. It needs `pip install grpcio`.

    $ python examples/serving/grpc_client.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from late_orders import NEW, saved_model
from predict_messages import METHOD, PredictRequest, PredictResponse

import extensor as xt

SERVER = Path(__file__).with_name("grpc_server.py")


def ask(channel, inputs):
    """Returns the outputs of a server for named tensors."""
    predict = channel.unary_unary(
        METHOD, PredictRequest.SerializeToString, PredictResponse.FromString
    )
    request = PredictRequest()
    request.model_spec.name = "late"
    for name, tensor in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(tensor))
    answer = predict(request, timeout=60)
    return {name: tf.make_ndarray(proto) for name, proto in answer.outputs.items()}


def main():
    path = Path(tempfile.mkdtemp(), "late", "1")
    model = saved_model(path)
    server = subprocess.Popen(
        [sys.executable, SERVER, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(server.stdout.readline())
        client = xt.serving.load_client(path)  # reads one small file, not the model
        request = client.encode(NEW)
        print("tensors:", *request)
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            late = client.decode(ask(channel, request)).numpy()[:, 0]
            print("late:", [f"{share:.2f}" for share in late])
            try:
                ask(channel, {n: tensor for n, tensor in request.items() if "city" not in n})
            except grpc.RpcError as error:
                print("a request without a field:", error.code().name)
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    here = model.predict(NEW, verbose=0)[:, 0]
    print("largest difference from the model here:", float(np.abs(late - here).max().round(5)))
    return late.tolist(), here.tolist()


if __name__ == "__main__":
    main()
