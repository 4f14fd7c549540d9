"""A small server of one SavedModel with the gRPC interface of TensorFlow Serving.

It imports TensorFlow and grpcio, and neither extensor nor Keras. When it is ready, it prints its
port.

    $ python examples/serving/grpc_server.py MODEL_FOLDER
"""

import sys
from concurrent import futures

import grpc

for name in ("extensor", "keras"):  # TensorFlow imports Keras where it is installed
    sys.modules[name] = None  # an import would be an error: the model needs neither

import tensorflow as tf  # noqa: E402
from predict_messages import METHOD, PredictRequest, PredictResponse  # noqa: E402


class Predictions(grpc.GenericRpcHandler):
    """The service of one signature."""

    def __init__(self, signature):
        self.signature = signature

    def service(self, details):
        if details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self.predict, PredictRequest.FromString, PredictResponse.SerializeToString
        )

    def predict(self, request, context):
        try:
            inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
            outputs = self.signature(**{name: tf.constant(x) for name, x in inputs.items()})
        except (TypeError, ValueError, tf.errors.OpError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        response = PredictResponse()
        for name, tensor in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor))
        return response


def main(folder):
    model = tf.saved_model.load(folder)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers([Predictions(model.signatures["serving_default"])])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
