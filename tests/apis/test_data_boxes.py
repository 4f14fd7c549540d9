"""Datasets of extension values in functions of tf.data that support only tensors."""

import pytest
import tensorflow as tf

import extensor as xt
from tests.apis.kinds import assert_same, measured
from tests.apis.matrix import RUN, row
from tests.apis.test_data import holds, slices

Dataset = tf.data.Dataset
from_list = tf.data.experimental.from_list
copy_to_device = tf.data.experimental.copy_to_device
prefetch_to_device = tf.data.experimental.prefetch_to_device


@row("tf.data.experimental.from_list")
def test_from_list(kind, run):
    values = kind.examples(0, 1, 2)
    holds(run, lambda x: from_list(x), values, values)
    batches = [kind.make(2), kind.make(1, 2)]
    holds(run, lambda x: from_list(x), batches, batches)
    assert from_list(batches).element_spec.is_compatible_with(kind.make(5))
    nested = [{"value": value, "n": n} for n, value in enumerate(values)]
    expected = [{"value": e["value"], "n": tf.constant(e["n"])} for e in nested]
    holds(run, lambda _: from_list(nested), 0, expected)


@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_values_of_a_list_get_their_common_type(run):
    dense = xt.DenseStructuredTensor([2], {"x": [[1, 2], [3, 4]]})
    ragged = xt.DenseStructuredTensor([2], {"x": tf.ragged.constant([[1], [2, 3]])})

    def taken(values):
        iterator = iter(from_list(list(values)))
        return [next(iterator)["x"], next(iterator)["x"]]

    for values in ([dense, ragged], [ragged, dense]):
        expected = [[record["x"] for record in value.to_py()] for value in values]
        assert [rows.to_list() for rows in run(taken, values)] == expected


def test_values_of_a_list_without_a_common_type_are_an_error_that_names_the_element():
    values = [measured(2), measured(1), xt.replace(measured(2), unit="other")]
    with pytest.raises(xt.errors.DTypeError, match=r"from_list, element 2: .*unit='g'.*'other'"):
        from_list(values)
    with pytest.raises(xt.errors.DTypeError, match=r"from_list, element 1"):
        from_list([measured(2), tf.constant(1.0)])
    with pytest.raises((TypeError, ValueError)):
        from_list([measured(2), (measured(2), measured(2))])


def test_a_list_of_plain_elements_is_handled_by_tensorflow():
    assert list(from_list([[1], [2, 3]]).as_numpy_iterator())[1].tolist() == [2, 3]
    with pytest.raises(ValueError, match="should not be empty"):
        from_list([])
    with pytest.raises(ValueError, match="must be a list"):
        from_list((measured(1),))


@pytest.mark.whole("traces many datasets")
@row("tf.data.experimental.copy_to_device")
def test_copy_to_device(kind, run):
    value = kind.make(3)
    holds(run, lambda x: slices(x).apply(copy_to_device("/cpu:0")), value, kind.examples(0, 1, 2))
    pairs = slices((value, {"n": tf.range(3)})).batch(2)
    copied = pairs.apply(copy_to_device("/cpu:0"))
    assert copied.element_spec == pairs.element_spec
    assert_same(list(copied), list(pairs))


@pytest.mark.whole("traces many datasets")
@row("tf.data.experimental.prefetch_to_device")
def test_prefetch_to_device(kind, run):
    value, batches = kind.make(3), [kind.make(2), kind.make(1, 2)]
    prefetched = lambda x: slices(x).batch(2).apply(prefetch_to_device("/cpu:0"))  # noqa: E731
    holds(run, prefetched, value, batches)
    again = prefetched(value)
    for _ in range(2):
        assert_same(list(again), batches)
    with_buffer = prefetch_to_device("/cpu:0", buffer_size=1)
    holds(run, lambda x: slices(x).apply(with_buffer), value, kind.examples(0, 1, 2))


@pytest.mark.whole("starts a process")
def test_values_are_copied_to_another_device(run_python):
    run_python("""
        import tensorflow as tf
        import extensor as xt

        cpus = tf.config.list_physical_devices("CPU")
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpus[0], two)

        @xt.extension_type
        class Named:
            numbers: tf.Tensor
            name: str

        rows = tf.ragged.constant([[1], [2, 3], []])
        records = xt.DenseStructuredTensor([3], {"rows": rows, "text": ["a", "b", "c"]})
        named = Named([1.0, 2.0, 3.0], "n")
        dataset = tf.data.Dataset.from_tensor_slices((named, records)).batch(2)
        for to_device in ("copy_to_device", "prefetch_to_device"):
            moved = dataset.apply(getattr(tf.data.experimental, to_device)("/cpu:1"))
            elements = list(moved)
            assert [len(r.to_py()) for _, r in elements] == [2, 1]
            for n, r in elements:
                assert n.name == "n"
                assert n.numbers.device.endswith("CPU:1"), n.numbers.device
                assert r["text"].device.endswith("CPU:1"), r["text"].device
            assert [r["rows"].to_list() for _, r in elements] == [[[1], [2, 3]], [[]]]
    """)
