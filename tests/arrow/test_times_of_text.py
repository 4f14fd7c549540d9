"""`times="text"`: ISO 8601 text becomes times exactly as Arrow casts it."""

import datetime as dt
import io
import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._arrow.times_of_text import times_of_text
from extensor.serving import flat_signature

UNITS = ["s", "ms", "us", "ns"]
ZONES = [None, "UTC", "Europe/Berlin", "+05:30"]
TYPES = {
    **{f"{u}, {z}": pa.timestamp(u, z) for u in UNITS for z in ZONES},
    **{str(t): t for t in (pa.date32(), pa.date64())},
    **{str(t): t for t in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))},
}


def arrow_cast(texts, arrow):
    """Returns what Arrow makes of texts; of times of a day, by way of a timestamp."""
    array = pa.array(texts, pa.string())
    if not pa.types.is_time(arrow):
        return array.cast(arrow)
    whole = pa.array([None if t is None else f"2000-01-01 {t}" for t in texts], pa.string())
    moments = whole.cast(pa.timestamp(arrow.unit))
    return pc.cast(moments, arrow)


def texts_of(arrow):
    """Returns a strategy of texts: many are times of the type, some are not."""
    times = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
    whole = times.map(lambda t: t.replace(microsecond=0))
    zone = st.sampled_from(["", "Z", "+02:00", "-0730"])
    separator = st.sampled_from(["T", " "])
    stamps = st.builds(lambda t, s, z: t.isoformat(s) + z, whole | times, separator, zone)
    return stamps | whole.map(lambda t: str(t.date())) | whole.map(lambda t: str(t.time())) | (
        st.sampled_from(["", "soon", "12:30", "2026-5-1", "2026-13-01", " 2026-05-01", "5"])
    )  # fmt: skip


def rows(texts):
    return [{"when": text, "log": [{"at": [text]}, {"at": []}]} for text in texts]


def schema(arrow):
    return pa.schema(
        {"when": arrow, "log": pa.list_(pa.struct({"at": pa.list_(arrow)}))}
    )  # fmt: skip


FORMS = {
    "python": lambda data: data,
    "records": lambda data: xt.from_arrow(pa.Table.from_pylist(data, schema(pa.string()))),
    "arrow": lambda data: pa.Table.from_pylist(data, schema(pa.string())),
    "large": lambda data: pa.Table.from_pylist(data, schema(pa.large_string())),
    "batch": lambda data: pa.Table.from_pylist(data, schema(pa.string())).to_batches()[0],
}


def cast(form, data, arrow, **kwargs):
    """Casts data in a form; tables go through a client, because `spec.cast` takes none."""
    spec = xt.spec_from_schema(schema(arrow))
    given = FORMS[form](data)
    if form in ("arrow", "large", "batch"):
        layout = xt.serving.Layout({"r": spec})
        return layout.decode(layout.encode({"r": given}, **kwargs))["r"]
    return spec.cast(given, **kwargs)


@pytest.mark.parametrize("kind", TYPES)
@given(st.data())
def test_a_column_of_text_is_cast_as_arrow_casts_it(kind, data):
    arrow = TYPES[kind]
    texts = data.draw(st.lists(texts_of(arrow) | st.none(), max_size=4))
    text = data.draw(st.sampled_from([pa.string(), pa.large_string()]))
    column = pa.array(texts, text)
    try:
        expected = arrow_cast(texts, arrow)
    except pa.ArrowInvalid:
        with pytest.raises(errors.DTypeError, match="ISO 8601"):
            times_of_text(column, arrow, str)
    else:
        assert times_of_text(column, arrow, str).equals(expected)


def example(arrow):
    """Returns a text that is a time of the type."""
    if pa.types.is_date(arrow):
        return "2026-05-01"
    if pa.types.is_time(arrow):
        return "12:30:01"
    return "2026-05-01T12:30:01" + ("" if arrow.tz is None else "+02:00")


@pytest.mark.whole("a matrix")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TYPES)
def test_text_of_any_data_is_cast_at_any_depth(form, kind):
    arrow = TYPES[kind]
    texts = [example(arrow)] * 2
    found = xt.to_arrow(cast(form, rows(texts), arrow, times="text"))
    assert found.schema.field("when").type == arrow
    expected = arrow_cast(texts, arrow)
    assert found.column(0).equals(expected)
    assert found.column(1).flatten().field("at").flatten().equals(expected)


@pytest.mark.parametrize("form", ["python", "records"])
def test_text_is_an_error_unless_it_is_asked_for(form):
    arrow = pa.timestamp("us", "UTC")
    with pytest.raises(errors.ExtensorError, match="when"):
        cast(form, rows(["2026-05-01T00:00:00Z"]), arrow)


def test_the_error_for_text_says_how_text_is_asked_for():
    arrow = pa.timestamp("us", "UTC")
    for text in ("2026-05-01T00:00:00Z", b"2026-05-01T00:00:00Z"):
        with pytest.raises(errors.DTypeError) as raised:
            cast("python", rows([text]), arrow)
        assert raised.value.path == "when, record 0"
        assert raised.value.expected == "timestamp[us, tz=UTC]"
        assert raised.value.received.endswith("'2026-05-01T00:00:00Z'")
        assert 'times="text"' in raised.value.fix
    with pytest.raises(errors.DTypeError) as raised:
        cast("python", rows([True]), arrow)
    assert 'times="text"' not in raised.value.fix


@pytest.mark.parametrize("form", FORMS)
def test_bad_text_is_an_error_with_path_value_and_count(form):
    data = rows(["2026-05-01", "soon", "2026-05-02", "never", "soon"])
    with pytest.raises(errors.DTypeError) as raised:
        cast(form, data, pa.date32(), times="text")
    assert "when" in raised.value.path
    assert raised.value.received == "'soon', the first of 3 other texts"
    assert "'2026-05-01'" in raised.value.expected
    nested = [{"when": "2026-05-01", "log": [{"at": ["2026-05-01", "later"]}]}]
    with pytest.raises(errors.DTypeError, match=r"log(\[\*\])?\.at.*'later'"):
        cast(form, nested, pa.date32(), times="text")


def test_nulls_and_other_times_beside_text():
    spec = xt.spec_from_schema(pa.schema({"when": pa.timestamp("us")}), nulls={"when": "mask"})
    moment = dt.datetime(2026, 5, 1, 12, 30)
    data = [{"when": "2026-05-01T12:30:00"}, {"when": None}, {"when": moment}, {}]
    expected = [{"when": moment}, {"when": None}, {"when": moment}, {"when": None}]
    assert spec.cast(data, times="text").to_py() == expected
    text = xt.from_arrow(
        pa.table({"when": ["2026-05-01T12:30:00", None, "2026-05-01T12:30:00", None]}),
        nulls="mask",
    )
    assert spec.cast(text, times="text").to_py() == expected


@pytest.mark.parametrize("shape", [[], [2, 3], [2, None]])
def test_records_of_any_rank(shape):
    texts = {0: "2026-05-01", 2: [["2026-05-01"] * 3, ["2026-05-02"] * 3]}[len(shape)]
    if shape == [2, None]:
        texts = [["2026-05-01"], ["2026-05-02", "2026-05-03"]]
    data = tf.nest.map_structure(lambda text: {"when": text, "n": 1}, texts)
    inner = xt.spec_from_schema(pa.schema({"when": pa.date32(), "n": pa.int32()}))
    spec = inner.unstacked()
    for size in reversed(shape):
        spec = spec.stacked(size)
    if shape == [2, None]:
        spec = xt.RaggedStructuredTensorSpec([None, None], inner)
    dates = tf.nest.map_structure(lambda text: {"when": dt.date.fromisoformat(text), "n": 1}, texts)
    for records in (data, xt.struct.constant(data)):
        assert spec.cast(records, times="text").to_py() == dates


def test_text_of_a_graph_is_an_error():
    spec = xt.spec_from_schema(pa.schema({"when": pa.date32()}))

    @tf.function
    def run(when):
        return spec.cast(xt.DenseStructuredTensor([1], {"when": when}), times="text")["when"]

    with pytest.raises(Exception, match="graph"):
        run(tf.constant(["2026-05-01"]))


def test_a_client_reads_times_of_every_form_of_data(tmp_path):
    arrow = pa.timestamp("us", "UTC")
    spec = xt.spec_from_schema(schema(arrow))
    signature = flat_signature(lambda r: {"r": r}, spec)
    data = rows(["2026-05-01T12:30:00+02:00"])
    expected = signature.encode(FORMS["python"](data), times="text")
    moment = dt.datetime(2026, 5, 1, 10, 30, tzinfo=dt.timezone.utc)
    assert signature.decode(signature.function(**expected))["r"].to_py() == rows([moment])
    lines = io.BytesIO(json.dumps(data[0]).encode()).read()
    requests = [FORMS[form](data) for form in FORMS] + [lines, lines.decode()]
    for request in requests:
        found = signature.encode(request, times="text")
        for name, tensor in expected.items():
            assert found[name].numpy().tolist() == tensor.numpy().tolist()


def test_another_value_of_the_argument_is_an_error():
    spec = xt.spec_from_schema(pa.schema({"when": pa.date32()}))
    with pytest.raises(errors.DTypeError, match="cast: times"):
        spec.cast([], times="iso")
