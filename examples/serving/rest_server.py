"""A small server of one SavedModel with the REST interface of TensorFlow Serving.

It imports TensorFlow, and neither extensor nor Keras. It prints its port when it is ready.

    $ python examples/serving/rest_server.py MODEL_FOLDER
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

for name in ("extensor", "keras"):  # TensorFlow imports Keras where it is installed
    sys.modules[name] = None  # an import would be an error: the model needs neither

import tensorflow as tf  # noqa: E402


def predict(signature, inputs):
    """Returns the named outputs, as nested lists, for named inputs as nested lists."""
    specs = signature.structured_input_signature[1]
    if missing := sorted(specs.keys() - inputs.keys()):
        raise ValueError(f"missing inputs: {', '.join(missing)}")
    tensors = {name: tf.constant(inputs[name], spec.dtype) for name, spec in specs.items()}
    return {name: tensor.numpy().tolist() for name, tensor in signature(**tensors).items()}


def handler_of(signature):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outputs = predict(signature, body["inputs"])
                # TensorFlow Serving leaves out the name of a single output.
                answer = {"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))}
                self.reply(200, answer)
            except (KeyError, TypeError, ValueError, tf.errors.OpError) as error:
                self.reply(400, {"error": str(error)})

        def reply(self, status, answer):
            body = json.dumps(answer, default=bytes.decode).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    return Handler


def main(folder):
    model = tf.saved_model.load(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(model.signatures["serving_default"]))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
