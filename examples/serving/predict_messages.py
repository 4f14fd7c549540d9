"""The messages of TensorFlow Serving's gRPC interface, without the package tensorflow-serving-api.

`PredictRequest` and `PredictResponse` have the fields and numbers of `predict.proto`, so these
clients and servers understand those of TensorFlow Serving.
"""

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/tensorflow.serving.PredictionService/Predict"
_PACKAGE = "tensorflow.serving"
_FIELD = descriptor_pb2.FieldDescriptorProto


def _tensors(message, name, number):
    """Adds the field `map<string, TensorProto> name = number`."""
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=_FIELD.TYPE_MESSAGE,
        type_name=".tensorflow.TensorProto",
        label=_FIELD.LABEL_OPTIONAL,
    )
    message.field.add(
        name=name,
        number=number,
        type=_FIELD.TYPE_MESSAGE,
        type_name=f".{_PACKAGE}.{message.name}.{entry.name}",
        label=_FIELD.LABEL_REPEATED,
    )


def _messages():
    file = descriptor_pb2.FileDescriptorProto(
        name="examples/predict.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[tf.make_tensor_proto(0).DESCRIPTOR.file.name],
    )
    spec = file.message_type.add(name="ModelSpec")
    for name, number in (("name", 1), ("signature_name", 3)):
        spec.field.add(
            name=name, number=number, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL
        )
    for name, tensors, number, spec_number in (
        ("PredictRequest", "inputs", 2, 1),
        ("PredictResponse", "outputs", 1, 2),
    ):
        message = file.message_type.add(name=name)
        message.field.add(
            name="model_spec",
            number=spec_number,
            type=_FIELD.TYPE_MESSAGE,
            type_name=f".{_PACKAGE}.ModelSpec",
            label=_FIELD.LABEL_OPTIONAL,
        )
        _tensors(message, tensors, number)
    pool = descriptor_pool.Default()  # it has TensorFlow's messages
    pool.AddSerializedFile(file.SerializeToString())
    return (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("PredictRequest", "PredictResponse")
    )


PredictRequest, PredictResponse = _messages()
