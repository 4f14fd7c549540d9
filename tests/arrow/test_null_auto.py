"""`nulls="auto"`: the fields that have nulls are masked, and an error lists the same fields."""

import importlib
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import extensor as xt
from extensor._arrow.schema import masked_places
from extensor.errors import FieldError, NullError, StructureError
from tests.samples.arrow_strategies import (
    MANY,
    exactly,
    nullable_types,
    plain,
    schemas_and_records,
    storable_types,
)


def pasted(error):
    """Returns the argument in the last line of an error."""
    line = str(error).splitlines()[-1]
    assert line.startswith("nulls="), line
    return eval(line.removeprefix("nulls="), {"xt": xt})


def masked(value):
    """Returns the places that records or a spec mask, as `nulls` names them."""
    return set(masked_places(xt.spec_of(value) if hasattr(value, "to_py") else value))


def null_places(rows, arrow, place=""):
    """Returns the places of None in Python values, without those inside of other None."""
    found = {place} if None in rows else set()
    rows = [row for row in rows if row is not None]
    if pa.types.is_struct(arrow):
        for field in arrow.fields:
            at = xt.Path.parse(place).names if place else ()
            inner = str(xt.Path(*at, field.name))
            found |= null_places([row[field.name] for row in rows], field.type, inner)
    elif pa.types.is_nested(arrow):
        items = [item for row in rows for item in row]
        found |= null_places(items, arrow.value_type, place + "[*]")
    return found


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=plain))
def test_the_masked_fields_are_those_that_have_nulls(case):
    schema, data = case
    records = xt.from_arrow(data, nulls="auto")
    names = {field.name for field in schema}
    for name in names:
        arrow = schema.field(name).type
        rows = [row[name] for row in data.to_pylist()]
        expected = null_places(rows, arrow, str(xt.Path(name)))
        assert masked(records.with_only(xt.Path(name))) == expected


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=nullable_types))
def test_no_value_is_lost_and_no_mask_is_too_many(case):
    schema, data = case
    records = xt.from_arrow(data, nulls="auto")
    written = xt.to_arrow(records, schema)
    written.validate(full=True)
    assert exactly(written) == exactly(data)
    if "null" in str(pa.struct(list(schema))).replace("not null", ""):
        return  # values of Arrow's null type are masked also where a null hides them
    places = masked(records)
    for place in places:
        policies = {**dict.fromkeys(places, "mask"), place: "error"}
        with pytest.raises(NullError):
            xt.from_arrow(data, nulls=policies)


@pytest.mark.parametrize("size", [0, 1])
def test_lists_of_unions_that_have_no_null_are_not_masked(size):
    items = pa.UnionArray.from_dense(
        pa.array([], pa.int8()), pa.array([], pa.int32()), [pa.array([], pa.int8()), pa.nulls(0)]
    )
    lists = pa.Array.from_buffers(pa.list_(items.type, size), 0, [None], children=[items])
    records = xt.from_arrow(pa.table({"x": lists}), nulls="auto")
    assert masked(records) == set(variants_of_nulls(pa.schema([("x", lists.type)])))


def variants_of_nulls(fields, names=()):
    """Yields the places of variants of Arrow's null type, which are always masked."""
    for field in fields:
        arrow, at = field.type, (*names, field.name)
        while pa.types.is_nested(arrow) and not pa.types.is_struct(arrow):
            if pa.types.is_union(arrow):
                variants = [arrow.field(i) for i in range(arrow.num_fields)]
                nulls = [v for v in variants if pa.types.is_null(v.type)]
                yield from (str(xt.Path(*at, v.name)) for v in nulls)
                yield from variants_of_nulls(variants, at)
                break
            if pa.types.is_map(arrow):
                arrow = pa.struct([("key", arrow.key_type), ("value", arrow.item_type)])
            else:
                arrow = arrow.value_type
        if pa.types.is_struct(arrow):
            yield from variants_of_nulls(arrow.fields, at)


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=nullable_types))
def test_an_error_lists_the_fields_that_auto_masks_and_a_line_that_mends_it(case):
    schema, data = case
    try:
        xt.from_arrow(data)
    except NullError as error:
        found = error
    else:
        assert masked(xt.from_arrow(data, nulls="auto")) <= set(variants_of_nulls(schema))
        return
    if found.path == "records":
        return
    mended = xt.from_arrow(data, nulls=pasted(found))
    if "null" in str(pa.struct(list(schema))).replace("not null", ""):
        return  # what a null hides is no value of Arrow's null type, and is not written as one
    assert exactly(xt.to_arrow(mended, schema)) == exactly(data)


@pytest.mark.parametrize("nulls", [None, "auto", {"*": "auto"}, {("*",): "auto"}])
def test_a_masked_field_whose_name_is_a_star_is_no_policy_for_the_others(nulls):
    table = pa.table({"a": pa.array([1], pa.int8()), "*": pa.array([None], pa.int8())})
    records = xt.from_arrow(table, nulls="auto")
    assert masked(records) == {"*"}
    again = xt.from_arrow(table, schema=xt.spec_of(records), nulls=nulls)
    assert masked(again) == {"*"}
    assert again.to_py() == [{"a": 1, "*": None}]
    assert not xt.to_awkward(again)["a"].layout.is_option


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=plain))
def test_the_spec_can_be_pinned_and_is_the_same_whether_nulls_are_seen_or_not(case):
    _, data = case
    records = xt.from_arrow(data, nulls="auto")
    spec = xt.spec_of(records)
    for rows in (data, data[:0] if isinstance(data, pa.Array) else data.slice(0, 0)):
        for nulls in (None, "auto", {"*": "auto"}):
            again = xt.from_arrow(rows, schema=spec, nulls=nulls)
            assert masked(again) == masked(records)
            assert spec._any_length().is_compatible_with(again)
    assert xt.from_arrow(data, schema=spec).to_py() == records.to_py() or "nan" in str(records)


@pytest.mark.whole("draws many values")
@MANY
@given(case=schemas_and_records(nulls=True, types=storable_types))
def test_files_of_parquet_are_masked_where_their_records_have_nulls(case, tmp_path_factory):
    schema, data = case
    if not len(schema):
        return
    folder = tmp_path_factory.mktemp("files")
    expected = xt.from_arrow(data, nulls="auto")
    for has_statistics in (True, False):
        write(folder, expected, has_statistics)
        dataset = xt.data.parquet(folder, 3, nulls="auto")
        assert masked(dataset.element_spec) == masked(expected)
        assert masked(xt.read_parquet(folder, nulls="auto")) == masked(expected)


def write(folder, records, has_statistics=True):
    """Writes records to two files of Parquet, in row groups of two records."""
    cut = len(records) // 2
    for name, part in (("a", records[:cut]), ("b", records[cut:])):
        path = folder / f"{name}.parquet"
        xt.write_parquet(part, path)
        stored = pq.read_table(path)
        pq.write_table(stored, path, row_group_size=2, write_statistics=has_statistics)


TABLE = pa.table({
    "n": [1, None, 3],
    "full": [1, 2, 3],
    "text": ["a", "b", None],
    "m": [{"a": 1, "b": 2}, {"a": None, "b": 3}, {"a": 3, "b": 4}],
    "one": [{"a": 1}, None, {"a": 3}],
    "lists": [[1], [], [2]],
    "items": [[1, None], [], [2]],
})  # fmt: skip
PLACES = {"n", "text", "m.a", "one", "items[*]"}


def test_only_fields_with_nulls_are_masked():
    records = xt.from_arrow(TABLE, nulls="auto")
    assert masked(records) == PLACES
    assert xt.to_arrow(records, TABLE.schema).to_pylist() == TABLE.to_pylist()
    assert masked(xt.from_arrow(TABLE.slice(0, 0), nulls="auto")) == set()


@pytest.mark.parametrize("has_statistics", [True, False])
def test_footers_say_which_fields_of_files_have_nulls(has_statistics, tmp_path, monkeypatch):
    write(tmp_path, xt.from_arrow(TABLE, nulls="auto"), has_statistics)
    read = []
    module = importlib.import_module("extensor._streams.parquet")
    batches_of = module.batches_of

    def watched(plan, *rest):
        read.extend(plan.schema.names)
        return batches_of(plan, *rest)

    monkeypatch.setattr(module, "batches_of", watched)
    dataset = xt.data.parquet(tmp_path, 2, nulls="auto")
    assert masked(dataset.element_spec) == PLACES
    # Parquet counts empty lists as nulls of the items, and a null record as nulls of its fields.
    assert set(read) == ({"one", "lists", "items"} if has_statistics else set(TABLE.column_names))
    monkeypatch.undo()
    read = [row for batch in dataset for row in batch.to_py()]
    assert read == TABLE.to_pylist()
    again = xt.data.parquet(tmp_path, 2, schema=dataset.element_spec)
    assert again.element_spec == dataset.element_spec


def test_a_path_alone_may_be_auto():
    for nulls in ({"n": "auto", "full": "auto"}, {"*": "mask", "n": "auto", "full": "auto"}):
        found = masked(xt.from_arrow(TABLE.select(["n", "full"]), nulls=nulls))
        assert found == {"n"}
    with pytest.raises(FieldError, match="other"):
        xt.from_arrow(TABLE, nulls={"*": "auto", "other": "auto"})
    mixed = xt.from_arrow(TABLE, nulls={"*": "auto", "n": 0, "text": xt.fill("?")})
    assert masked(mixed) == PLACES - {"n", "text"}


def test_nulls_below_a_null_do_not_count():
    below = pa.array([{"a": 1}, None, {"a": 3}])
    column = pa.StructArray.from_arrays([pa.array([1, None, 3])], ["a"], mask=below.is_null())
    assert masked(xt.from_arrow(pa.table({"m": column}), nulls="auto")) == {"m"}


def test_a_union_with_a_variant_of_nulls_has_them_there():
    variants = [pa.array([1, None]), pa.array(["a"]), pa.nulls(1)]
    codes, offsets = pa.array([0, 1, 2, 0], pa.int8()), pa.array([0, 0, 0, 1], pa.int32())
    names = ["number", "text", "null"]
    table = pa.table({"u": pa.UnionArray.from_dense(codes, offsets, variants, names)})
    auto, mask = (xt.from_arrow(table, nulls=word) for word in ("auto", "mask"))
    assert xt.spec_of(auto) == xt.spec_of(mask)
    assert auto["u"].to_py() == mask["u"].to_py() == [1, b"a", None, None]


def test_what_is_known_before_the_data_is_read_takes_no_auto():
    for read in (
        lambda nulls: xt.spec_from_schema(TABLE.schema, nulls=nulls),
        lambda nulls: xt.data.batches([TABLE], TABLE.schema, 2, nulls=nulls),
        lambda nulls: xt.arrow_function(lambda x: x, TABLE.schema, nulls=nulls),
    ):
        for nulls in ("auto", {"*": "mask", "n": "auto"}):
            with pytest.raises(StructureError, match=r"'auto'.*\"mask\""):
                read(nulls)


@pytest.mark.parametrize("count", [1, 2, 50, 51, 80])
def test_an_error_names_fifty_fields_and_counts_the_others(count):
    table = pa.table({f"x{i}": pa.array([None, i, None]) for i in range(count)} | {"full": [1] * 3})
    with pytest.raises(NullError) as caught:
        xt.from_arrow(table)
    text = str(caught.value)
    assert len(re.findall(r"x\d+ \(2\)", text)) == (0 if count == 1 else min(count, 50))
    assert ("30 more" in text, "1 more" in text) == (count == 80, count == 51)
    records = xt.from_arrow(table, nulls=pasted(caught.value))
    assert masked(records) == {f"x{i}" for i in range(count)}


def test_the_line_to_paste_keeps_the_policies_that_were_given():
    given = {"n": 0, "full": "error", "text": xt.fill("it's"), "m": "mask"}
    with pytest.raises(NullError) as caught:
        xt.from_arrow(TABLE, nulls=given)
    assert str(caught.value).endswith(
        """nulls={"n": 0, "text": xt.fill("it's"), "m": "mask", "m.a": "mask", """
        """"one": "mask", "items[*]": "mask"}"""
    )
    records = xt.from_arrow(TABLE, nulls=pasted(caught.value))
    assert records["n"].numpy().tolist() == [1, 0, 3]
    assert masked(records) == {"m", "m.a", "one", "items[*]"}
