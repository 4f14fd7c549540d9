"""`xt.data.bucket` and `pack`: batches of few static shapes, free places, states and errors."""

import functools
import itertools
import json
import operator

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
import extensor.keras
from extensor._data import pack as pack_module
from extensor.errors import DTypeError, FieldError, FormatError, StructureError

Optional = tf.experimental.Optional

BOUNDARIES, BATCH_SIZES = [1, 3, 6], [4, 3, 2]
LENGTHS = st.lists(st.integers(0, 6), max_size=25)


def orders(lengths):
    """Returns records with a number, and lists of records with lists in them."""
    lengths = tf.convert_to_tensor(lengths, tf.int64)
    rows, count = tf.range(tf.size(lengths, tf.int64)), tf.reduce_sum(lengths)
    numbers = tf.range(count)
    place = numbers - tf.repeat(tf.cumsum(lengths, exclusive=True), lengths)
    tags = tf.RaggedTensor.from_row_lengths(tf.repeat(numbers, place % 3), place % 3)
    fields = {"n": numbers, "tags": tags, "name": tf.strings.as_string(numbers)}
    items = xt.RaggedStructuredTensor.from_row_lengths(
        xt.DenseStructuredTensor([None], fields), lengths
    )
    return xt.DenseStructuredTensor([None], {"id": rows, "items": items})


class Given:
    """Datasets of records whose lists have the lengths that a test gives, made once for all."""

    lengths = None


def of_given(how):
    lengths = tf.data.Dataset.from_generator(
        lambda: iter(Given.lengths), output_signature=tf.TensorSpec([None], tf.int64)
    )
    batches = lengths.map(orders)
    return batches.unbatch() if how == "rows" else batches


@functools.cache
def of_lengths(make, how="rows"):
    """Returns a function from lengths to what is made of a dataset of such records.

    Each call is a pass of one iterator over the dataset: to begin a new iterator takes far longer
    than the pass. An optional without a value ends each pass.
    """
    dataset = make(of_given(how))
    optionals = dataset.map(lambda *batch: Optional.from_value(batch if batch[1:] else batch[0]))
    end = tf.data.Dataset.range(1).map(lambda _: Optional.empty(dataset.element_spec))
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # it begins a pass too early
    iterator = iter(optionals.concatenate(end).repeat().with_options(options))

    def found(lengths):
        Given.lengths = [np.array(lengths, np.int64)]
        batches = itertools.takewhile(operator.methodcaller("has_value"), iterator)
        return [batch.get_value() for batch in batches]

    return found


def bucketed(dataset):
    return xt.data.bucket(dataset, "items", BOUNDARIES, BATCH_SIZES, padded={"items.tags": 2})


def packed(dataset):
    return xt.data.pack(dataset, {"items": 8, "items.tags": 6}, batch_size=4)


def packed_in_windows(dataset):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_module, "_WINDOW", 4)
        return packed(dataset)


def rows_of(batch, spec):
    """Returns the rows of a static batch that are not free, as lists again."""
    back = xt.struct.from_static(batch, spec)
    valid = batch["id"].mask.numpy()
    return [row for row, kept in zip(back.to_py(), valid, strict=True) if kept]


def flat(value):
    """Returns the places of all lists in a static field."""
    return flat(value.values) if hasattr(value, "values") else value


def records_of(lengths):
    records = orders(lengths)
    return records, tf.data.Dataset.from_tensor_slices(records)


@pytest.mark.whole("draws many values")
@pytest.mark.parametrize("how", ["rows", "batches"])
@given(lengths=LENGTHS)
def test_each_record_is_in_one_batch_of_its_bucket(how, lengths):
    records = orders(lengths)
    found = of_lengths(bucketed, how)(lengths)
    rows = [rows_of(batch, xt.spec_of(records)) for batch in found]
    everything = [row for batch in rows for row in batch]
    assert sorted(everything, key=lambda row: row["id"]) == records.to_py()
    shapes = [tuple(batch["items.tags"].values.shape) for batch in found]
    assert set(shapes) <= {(n, m, 2) for n, m in zip(BATCH_SIZES, BOUNDARIES, strict=True)}
    before = dict(zip(BOUNDARIES, [-1, 1, 3], strict=True))
    for batch, (_, end, _) in zip(rows, shapes, strict=True):
        assert all(before[end] < lengths[row["id"]] <= end for row in batch)


def numbers_in_buckets(dataset):
    flat = dataset.map(lambda rows: rows.without("items").with_updates(x=rows["items.n"]))
    return xt.data.bucket(flat, "x", BOUNDARIES, BATCH_SIZES)


def numbers_in_buckets_of_tensorflow(dataset):
    return dataset.map(lambda row: (row["id"], row["items.n"])).bucket_by_sequence_length(
        lambda _, x: tf.shape(x)[0],
        [end + 1 for end in BOUNDARIES],
        [*BATCH_SIZES, 1],
        pad_to_bucket_boundary=True,
    )


@pytest.mark.whole("draws many values")
@given(lengths=LENGTHS)
def test_buckets_are_those_of_tensorflow(lengths):
    found = of_lengths(numbers_in_buckets, "batches")(lengths)
    expected = of_lengths(numbers_in_buckets_of_tensorflow)(lengths)
    for batch, (ids, padded) in zip(found, expected, strict=True):
        count = len(ids)
        np.testing.assert_array_equal(batch["id"].values[:count], ids)
        np.testing.assert_array_equal(batch["x"].values[:count], padded)
        assert batch["id"].to_py()[count:] == [None] * (len(batch["id"].mask) - count)
        assert not batch["x"].mask[count:].numpy().any()


@pytest.mark.whole("draws many values")
@pytest.mark.parametrize("make", [packed, packed_in_windows])
@given(lengths=LENGTHS)
def test_packed_batches_have_as_many_records_as_fit(make, lengths):
    records = orders(lengths)
    found = of_lengths(make)(lengths)
    own = [rows_of(batch, xt.spec_of(records)) for batch in found]
    assert [row for rows in own for row in rows] == records.to_py()
    for batch in found:
        assert flat(batch["items.n"]).shape == [8]
        assert flat(batch["items.tags"]).shape == [6]
        assert batch["id"].values.shape == [4]
    sizes = [(n, sum(i % 3 for i in range(n))) for n in lengths]  # items and tags
    window, end = 4 if make is packed_in_windows else 1 << 13, 0
    for rows, following in itertools.pairwise(own):
        assert following
        more = sizes[end : end + len(rows) + 1]
        end += len(rows)
        is_full = len(rows) == 4 or end % window == 0
        assert is_full or sum(n for n, _ in more) > 8 or sum(n for _, n in more) > 6


def test_the_element_spec_is_open_only_where_buckets_differ():
    _, rows = records_of([1, 2, 3])
    tags = {"items.tags": 2}
    spec = xt.data.bucket(rows, "items", [1, 3], [4, 2], tags).element_spec
    assert spec.field_spec("items.tags").values.shape.as_list() == [None, None, 2]
    spec = xt.data.bucket(rows, "items", [1, 3], 4, tags).element_spec
    assert spec.field_spec("items.tags").values.shape.as_list() == [4, None, 2]
    own = [{"items.tags": 1}, {"items.tags": 2}]
    spec = xt.data.bucket(rows, "items", [1, 3], 4, own).element_spec
    assert spec.field_spec("items.tags").values.shape.as_list() == [4, None, None]
    spec = xt.data.pack(rows, {"items": 8}, 4, tags).element_spec
    assert spec.field_spec("id").values == tf.TensorSpec([4], tf.int64)


def test_without_the_remainder_no_row_is_null():
    _, rows = records_of([1, 2, 3, 1, 5, 1, 6, 6])
    tags = {"items.tags": 2}
    made = xt.data.bucket(rows, "items", BOUNDARIES, 2, tags, drop_remainder=True)
    assert isinstance(made.element_spec.field_spec("id"), tf.TensorSpec)
    assert made.element_spec.shape == [2]
    ids = [batch["id"].numpy().tolist() for batch in made]
    assert ids == [[1, 2], [0, 3], [4, 6]]


def test_labels_and_weights_of_free_rows_do_not_count():
    _, rows = records_of([1, 2, 1])
    rows = rows.map(lambda row: (row, tf.cast(row["id"], tf.float32), 1.0))
    for made in (
        xt.data.bucket(rows, "items", [2], [4], {"items.tags": 2}),
        xt.data.pack(rows, {"items": 4, "items.tags": 4}),
    ):
        [(records, label, weight)] = made
        assert records["id"].to_py() == [0, 1, 2, None]
        assert label.to_py() == [0.0, 1.0, 2.0, None]
        assert weight.numpy().tolist() == [1.0, 1.0, 1.0, 0.0]


def test_several_lists_choose_the_bucket_together():
    records = xt.struct.constant([{"a": [1], "b": [1, 2, 3]}, {"a": [1], "b": []}])
    rows = tf.data.Dataset.from_tensor_slices(records)
    found = xt.data.bucket(rows, ["a", "b"], [1, 3], 1)
    shapes = [[batch[name].values.shape[1] for name in "ab"] for batch in found]
    assert shapes == [[3, 3], [1, 1]]


@pytest.mark.parametrize("how", ["cut", "drop"])
def test_records_that_are_too_long_are_cut_or_dropped(how):
    records, rows = records_of([1, 5, 2])
    tags = {"items.tags": 2}
    packed = xt.data.pack(rows, {"items": 3}, 3, tags, overflow=how)
    bucketed = xt.data.bucket(rows, "items", [1, 3], 3, tags, overflow=how)
    expected = records.to_py()
    expected[1]["items"] = expected[1]["items"][:3]
    if how == "drop":
        del expected[1]
    for made in (packed, bucketed):
        found = [row for batch in made for row in rows_of(batch, xt.spec_of(records))]
        assert sorted(found, key=lambda row: row["id"]) == expected


def test_the_share_of_free_places_is_that_of_the_masks():
    _, rows = records_of([1, 2, 1])
    made = xt.data.bucket(rows, "items", [1, 3], 2, {"items.tags": 4})
    assert xt.data.padding_share(made) == {
        "id": 1 / 4, "items": 4 / 8, "items.tags": 31 / 32,
    }  # fmt: skip
    labeled = made.map(lambda batch: (batch, batch["id"]))
    assert xt.data.padding_share(labeled)["1"] == 1 / 4
    assert xt.data.padding_share(tf.data.Dataset.range(3)) == {}
    with pytest.raises(DTypeError, match=r"^padding_share: expected a tf\.data\.Dataset, got list"):
        xt.data.padding_share([])


# States, shards and checkpoints.


@pytest.fixture
def path(tmp_path):
    return written(tmp_path)


def written(folder):
    draw = np.random.default_rng(5)
    table = pa.table({"id": range(60), "x": [list(range(draw.integers(0, 6))) for _ in range(60)]})
    pq.write_table(table, folder / "it.parquet", row_group_size=7)
    return folder / "it.parquet"


MAKE = {
    "bucket": lambda source, **own: xt.data.bucket(source, "x", [1, 3, 5], [4, 3, 2], **own),
    "pack": lambda source, **own: xt.data.pack(source, {"x": 9}, 5, **own),
}


def made(path, how, state=None, **options):
    shuffle = xt.data.Shuffle(seed=3, window=9)
    return MAKE[how](xt.data.parquet(path, 4, shuffle=shuffle, **options), state=state)


def plain(batches):
    return [batch.to_py() for batch in batches]


@pytest.mark.whole("makes many datasets")
@pytest.mark.parametrize("how", MAKE)
def test_a_state_goes_on_at_the_exact_batch(path, how):
    dataset = made(path, how)
    passes = [plain(dataset), plain(dataset)]
    assert passes[0] != passes[1]
    steps = (0, 1, 5, len(passes[0]) - 1)
    dataset = made(path, how).map(lambda batch: batch).prefetch(2)
    states = {(0, 0): xt.data.state(dataset, 0)}
    for number in range(2):
        iterator, seen = iter(dataset), []
        for step in steps[1:]:
            seen += plain(itertools.islice(iterator, step - len(seen)))
            assert seen == passes[number][:step]
            states[number, step] = xt.data.state(iterator, step)
        assert seen + plain(iterator) == passes[number]
    for (number, step), state in states.items():
        resumed = made(path, how, json.loads(json.dumps(state)))
        assert plain(resumed) == passes[number][step:]
        if number == 0:
            assert plain(resumed) == passes[1]
    # A state within what was resumed.
    resumed = iter(made(path, how, xt.data.state(made(path, how), 3)))
    plain(itertools.islice(resumed, 2))
    assert plain(made(path, how, xt.data.state(resumed, 2))) == passes[0][5:]


@pytest.mark.parametrize("how", MAKE)
def test_shards_have_each_record_once(path, how):
    found = [plain(made(path, how, shard=(index, 3))) for index in range(3)]
    ids = [row["id"] for batches in found for batch in batches for row in batch]
    assert sorted(n for n in ids if n is not None) == list(range(60))


@pytest.mark.parametrize("steps", [0, 1, 6])
@pytest.mark.parametrize("how", MAKE)
def test_a_checkpoint_goes_on_at_the_exact_batch(path, tmp_path, how, steps):
    iterator = iter(made(path, how).prefetch(2))
    seen = plain(itertools.islice(iterator, steps))
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    other = iter(made(path, how).prefetch(2))
    tf.train.Checkpoint(iterator=other).restore(saved)
    assert seen + plain(other) == plain(made(path, how))


def test_a_wrong_state_is_an_error_by_name(path):
    state = xt.data.state(made(path, "pack"), 1)
    for change, error, text in (
        ({"version": 9}, FormatError, r"^state: expected a state of version 1, got version 9"),
        ({"step": -1}, StructureError, r"^state: expected an epoch, and a step of 0 on"),
        ({"digest": ""}, StructureError, r"^state, digest: .*, which this xt\.data\.pack has"),
    ):
        with pytest.raises(error, match=text):
            made(path, "pack", {**state, **change})
    with pytest.raises(StructureError, match=r"^state, digest: .*, which this xt\.data\.bucket"):
        made(path, "bucket", state)
    with pytest.raises(StructureError, match=r"^state: expected the state of this shard"):
        made(path, "pack", [state])
    with pytest.raises(DTypeError, match=r"^state: expected a state of this xt\.data\.pack, which"):
        made(path, "pack", state["source"])
    other = xt.DenseStructuredTensor([1], {"x": tf.ragged.constant([[1]])})
    dataset = tf.data.Dataset.from_tensors(other)
    with pytest.raises(StructureError, match=r"^dataset: expected a dataset of xt\.data"):
        MAKE["pack"](dataset, state=state)
    with pytest.raises(StructureError, match=r"^xt\.data\.pack: expected a source without a serv"):
        MAKE["pack"](xt.data.parquet(path, 4, shard="service"))
    with pytest.raises(StructureError, match=r"^xt\.data\.pack: expected a dataset of files"):
        xt.data.steps_per_shard(made(path, "pack"))


# Models.


class Score(xt.keras.Model):
    """Counts how often TensorFlow traces it."""

    def __init__(self):
        super().__init__()
        self.bag = xt.keras.layers.EmbeddingBag(4, input_dim=10)
        self.dense = keras.layers.Dense(1)
        self.traces = 0

    def call(self, records):
        self.traces += 1
        return self.dense(self.bag(records["x"]))


def trained(dataset, jit_compile):
    keras.utils.set_random_seed(1)
    model = Score()
    model.compile("sgd", "mse", jit_compile=jit_compile)
    # Keras warns at the end of a dataset of which it does not know the number of batches.
    dataset = dataset.take(15).apply(tf.data.experimental.assert_cardinality(15))
    model.fit(dataset, shuffle=False, verbose=0)
    return model


def labeled(batch):
    return batch, tf.cast(batch["id"], tf.float32) / 60.0


@pytest.fixture(scope="module")
def compiled(tmp_path_factory, run_python):
    """Of each way: the modules that XLA compiled until then, the traces, and the weights.

    The process writes what XLA compiles.
    """
    path, dump = written(tmp_path_factory.mktemp("compiled")), tmp_path_factory.mktemp("dump")
    code = f"""
import json, os, pathlib
# XLA reads it when it first compiles.
os.environ["XLA_FLAGS"] = "--xla_dump_to={dump} --xla_dump_hlo_as_text"
import tensorflow as tf
from tests.data import test_static_batches as tests
for how in tests.MAKE:
    batches = tests.made(pathlib.Path({str(path)!r}), how)
    model = tests.trained(batches.map(tests.labeled), True)
    modules = pathlib.Path({str(dump)!r}).glob("module_*.before_optimizations.txt")
    weights = [weight.tolist() for weight in model.get_weights()]
    found = [how, len(list(modules)), model.traces, model.jit_compile, weights]
    print("found", json.dumps(found))
"""
    lines = run_python(code).stdout.splitlines()
    found = [json.loads(line[6:]) for line in lines if line.startswith("found")]
    return {how: values for how, *values in found}


@pytest.mark.whole("compiles models with XLA")
@pytest.mark.parametrize("how", MAKE)
def test_a_compiled_model_trains_as_one_on_the_rows_alone(path, compiled, how):
    _, _, is_compiled, weights = compiled[how]
    spec = xt.data.parquet(path, 4).element_spec

    def rows(batch):
        kept = tf.where(batch["id"].mask)[:, 0]
        back = xt.struct.from_static(batch, spec)
        back = back.with_updates(id=back["id"].values)
        return labeled(tf.gather(back, kept))

    expected = trained(made(path, how).map(rows), False)
    for weight, twin in zip(weights, expected.get_weights(), strict=True):
        np.testing.assert_allclose(weight, twin, rtol=1e-4, atol=1e-6)
    assert is_compiled


@pytest.mark.whole("starts a process that compiles with XLA")
def test_a_model_is_compiled_at_most_once_for_each_bucket(compiled):
    # The modules of both, because XLA writes to one folder.
    for how, buckets, modules in (("bucket", 3, 3), ("pack", 1, 4)):
        found, traces, *_ = compiled[how]
        assert found == modules, how
        # Keras calls the model to build it, and extensor to see what it reads.
        assert traces <= buckets + 2


# Bad input.

ROWS = records_of([1, 2, 4])[1]
TAGS = {"items.tags": 2}
RAGGED_LABELS = ROWS.batch(2).map(lambda rows: (rows, rows["items.n"]))
ONE_LABEL = ROWS.batch(2).map(lambda rows: (rows, 1.0))
BAD = {
    "a list without a size": (
        lambda: xt.data.bucket(ROWS, "items", [4], 2), StructureError,
        "items.tags: expected a capacity for each list, got none. Give padded={'items.tags': ",
    ),
    "no list": (
        lambda: xt.data.bucket(ROWS, "id", [4], 2, TAGS), StructureError,
        "id: expected one list for each record, got no list. Give the path of a list",
    ),
    "a list in lists": (
        lambda: xt.data.bucket(ROWS, "items.tags", [4], 2, {"items": 3}), StructureError,
        "items.tags: expected one list for each record, got lists in items. Give the path",
    ),
    "no field": (
        lambda: xt.data.bucket(ROWS, "item", [4], 2), FieldError,
        "item: expected one of the fields id, items, got item. Did you mean items?",
    ),
    "no paths": (
        lambda: xt.data.bucket(ROWS, [], [4], 2, {"items": 3}), StructureError,
        "xt.data.bucket: by: expected the path of a list, got none. Write by=",
    ),
    "no boundaries": (
        lambda: xt.data.bucket(ROWS, "items", [], 2), StructureError,
        "xt.data.bucket: boundaries: expected one boundary at least, in ascending order, got []",
    ),
    "boundaries that descend": (
        lambda: xt.data.bucket(ROWS, "items", [4, 2], 2), StructureError,
        "xt.data.bucket: boundaries: expected one boundary at least, in ascending order, got [",
    ),
    "a boundary of 0": (
        lambda: xt.data.bucket(ROWS, "items", [0, 2], 2), StructureError,
        "xt.data.bucket: boundaries: expected an integer of 1 or more, got 0. Give the sizes",
    ),
    "one boundary": (
        lambda: xt.data.bucket(ROWS, "items", 4, 2), DTypeError,
        "xt.data.bucket: boundaries: expected a list of integers, got int. Give the sizes",
    ),
    "batch sizes as in TensorFlow": (
        lambda: xt.data.bucket(ROWS, "items", [2, 4], [3, 2, 1]), StructureError,
        "xt.data.bucket: batch_sizes: expected one for each of the 2 boundaries, got 3 of them.",
    ),
    "a batch size of 0": (
        lambda: xt.data.bucket(ROWS, "items", [2, 4], 0), StructureError,
        "xt.data.bucket: batch_sizes: expected an integer of 1 or more, got 0. Give the number",
    ),
    "sizes that are no mapping": (
        lambda: xt.data.bucket(ROWS, "items", [4], 2, 3), DTypeError,
        "xt.data.bucket: padded: expected a mapping from paths, got int. Write",
    ),
    "no overflow": (
        lambda: xt.data.bucket(ROWS, "items", [4], 2, overflow="keep"), DTypeError,
        "xt.data.bucket: overflow: expected 'error', 'cut' or 'drop', got 'keep'. Give \"drop\"",
    ),
    "no dataset": (
        lambda: xt.data.bucket([1], "items", [4], 2), DTypeError,
        "xt.data.bucket: dataset: expected a tf.data.Dataset, such as xt.data.parquet returns, got",
    ),
    "no records": (
        lambda: xt.data.pack(tf.data.Dataset.range(3), {"items": 4}), DTypeError,
        "xt.data.pack: dataset: expected records, one for each row, got elements of TensorSpec.",
    ),
    "ragged labels": (
        lambda: xt.data.pack(RAGGED_LABELS, {"items": 4}), StructureError,
        "xt.data.pack: dataset[1]: expected records, or one value for each of them, got lists. Put",
    ),
    "one label for all": (
        lambda: xt.data.pack(ONE_LABEL, {"items": 4}), StructureError,
        "xt.data.pack: dataset[1]: expected a value for each record, got one for all. Leave",
    ),
    "nothing to pack": (
        lambda: xt.data.pack(ROWS, {}), StructureError,
        "xt.data.pack: packed: expected a path of lists at least, got none. Give for example",
    ),
    "no lists to pack": (
        lambda: xt.data.pack(ROWS, {"id": 3}), StructureError,
        "id: expected 1 level of lists, one for each number, got 0. Give the path of a list",
    ),
    "numbers for more levels": (
        lambda: xt.data.pack(ROWS, {"items": (4, 3)}), StructureError,
        "items: expected 2 levels of lists, one for each number, got 1. Give the path of a list",
    ),
    "a list that is not packed": (
        lambda: xt.data.pack(ROWS, {"items": 4}), StructureError,
        "items.tags: expected a capacity for each list, got none. Give padded=",
    ),
    "a number of 0": (
        lambda: xt.data.pack(ROWS, {"items": 0}), StructureError,
        "xt.data.pack: items: expected an integer of 1 or more, got 0. Give the number",
    ),
    "no places": (
        lambda: xt.data.pack(ROWS, {"items": 4}, 0), StructureError,
        "xt.data.pack: batch_size: expected an integer of 1 or more, got 0. Give the number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_raises_an_error_by_name(name):
    call, error, text = BAD[name]
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value).startswith(text)


def test_records_in_no_bucket_fail_when_they_come():
    for dataset, text in (
        (xt.data.bucket(ROWS, "items", [3], 2, TAGS), r"items: expected lists of at most 3 items"),
        (xt.data.pack(ROWS, {"items": 3}, 2, TAGS), r"items: expected at most 3 items in the list"),
        (xt.data.bucket(ROWS, "items", [4], 2, {"items.tags": 1}), r"items\.tags: expected lists"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            list(dataset)


def test_no_records_give_no_batches():
    _, rows = records_of([])
    assert list(xt.data.bucket(rows, "items", [4], 2, TAGS)) == []
    assert list(xt.data.pack(rows, {"items": 4}, 2, TAGS)) == []
