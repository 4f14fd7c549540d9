"""What a graph parses of messages of which it reads a few fields."""

import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2

import extensor as xt

Info = descriptor_pb2.GeneratedCodeInfo
MESSAGES = [
    Info(annotation=[Info.Annotation(path=[n], source_file=f"file {n}", begin=n, end=n + 1)] * n)
    for n in range(4)
]
SERIALIZED = [message.SerializeToString() for message in MESSAGES]
SPEC = xt.spec_from_proto(Info)


def parsed(function, values, word):
    """Returns the result of a function, and the fields that each op of a name parses."""
    graph, ran = tf.Graph(), tf.compat.v1.RunMetadata()
    with graph.as_default():
        given = tf.compat.v1.placeholder(tf.string, [None])
        result = function(given)
    with tf.compat.v1.Session(graph=graph) as session:
        options = tf.compat.v1.RunOptions(output_partition_graphs=True)
        found = session.run(result, {given: values}, options, ran)
    nodes = [node for part in ran.partition_graphs for node in part.node]
    return found, [node for node in nodes if node.op.startswith(word)]


def decoded(function):
    """Returns the result of a function, and how many fields each op decodes."""
    found, nodes = parsed(function, SERIALIZED, "DecodeProto")
    return found, sorted(len(node.attr["field_names"].list.s) for node in nodes)


def counts(records):
    return records["annotation"].row_lengths()


def begins(records):
    return records["annotation", "begin"].row_lengths(axis=2).flat_values


@pytest.mark.whole("traces many functions")
def test_messages_that_nothing_reads_are_not_decoded():
    found, outer = decoded(lambda s: counts(xt.from_proto(s, Info)))
    assert found.tolist() == [0, 1, 2, 3]
    assert set(outer) == {1}  # the lists of annotations, and nothing in these
    _, whole = decoded(lambda s: tf.nest.flatten(xt.from_proto(s, Info), expand_composites=True))
    assert set(whole) == {1, len(Info.Annotation.DESCRIPTOR.fields)}


@pytest.mark.whole("traces many functions")
def test_the_fields_used_are_the_only_ones_that_are_decoded():
    fields = xt.data.fields_used(begins, SPEC)
    assert list(fields) == ["annotation.begin"]
    found, sizes = decoded(lambda s: begins(xt.from_proto(s, Info, columns=fields)))
    assert found.tolist() == [1] * 6
    assert set(sizes) == {1}
    plain, every = decoded(lambda s: begins(xt.from_proto(s, Info)))
    assert plain.tolist() == found.tolist()
    assert sum(every) > sum(sizes)


def test_the_features_used_are_the_only_ones_that_are_parsed():
    records = xt.struct.constant(
        [{"a": n, "b": 1.5, "steps": [{"m": n, "t": "x"}]} for n in range(3)]
    )
    spec = xt.spec_of(records)
    fields = xt.data.fields_used(lambda r: r["steps", "m"].flat_values, spec)

    def used(serialized):
        return xt.from_tf_example(serialized, spec, columns=fields)["steps", "m"].flat_values

    found, nodes = parsed(used, xt.to_tf_example(records).numpy(), "ParseExample")
    assert found.tolist() == [0, 1, 2]
    [node] = nodes
    assert len(node.attr["Tdense"].list.type) + len(node.attr["ragged_value_types"].list.type) == 1
