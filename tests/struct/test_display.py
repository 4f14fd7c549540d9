"""What people see of records: a few lines, a tree, HTML."""

import html.parser
import re

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.types import MaskedTensor, UnionTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor

NASTY = "<script>alert(1)</script>\"'&\x1b\n\u202e"


def steps():
    return Dense([3], {"minutes": [5, 20, 8]})


def recipes():
    return Dense(
        [2],
        {
            "title": ["Snickerdoodles", "Flapjacks"],
            "stars": MaskedTensor([4, 0], [True, False]),
            "amount": UnionTensor.from_values([1.5, {"cups": 2}]),
            "steps": Ragged.from_row_splits(steps(), [0, 2, 3]),
        },
    )


def wide(count=10_000):
    return Dense([3], {f"f{i}": tf.range(3) for i in range(count)})


# The repr.


def test_a_small_value_is_one_line():
    assert repr(Dense([2], {"x": [1, 2]})) == (
        "<StructuredTensor shape=(2,) {x: int32} [{x: 1}, {x: 2}]>"
    )
    assert repr(Dense([], {"x": 0.1})) == "<StructuredTensor shape=() {x: float32} {x: 0.1}>"
    assert repr(Dense([0], {"x": []})) == "<StructuredTensor shape=(0,) {x: float32} []>"
    assert repr(Dense([2], {})) == "<StructuredTensor shape=(2,) {} [{}, {}]>"


def test_a_record_is_a_line():
    assert str(recipes()).splitlines() == [
        "<StructuredTensor shape=(2,) {title: string, stars: int32 or null, amount: union "
        "{float: float32, record: {cups: int32}}, steps: [*] {minutes: int32}}",
        " [{title: b'Snickerdoodles', stars: 4, amount: 1.5, steps: [{minutes: 5}, ...]},",
        "  {title: b'Flapjacks', stars: None, amount: {cups: 2}, steps: [{minutes: 8}]}]>",
    ]
    assert repr(recipes()["steps"]) == (
        "<StructuredTensor shape=(2, None) {minutes: int32}\n"
        " [[{minutes: 5}, {minutes: 20}],\n  [{minutes: 8}]]>"
    )


def test_the_first_and_last_records_are_shown():
    lines = repr(Dense([1000], {"number": np.arange(1000) + 10_000})).splitlines()
    assert lines[1:] == [
        *(" [{number: 10000},", "  {number: 10001},", "  {number: 10002},", "  ...,"),
        *("  {number: 10998},", "  {number: 10999}]>"),
    ]


@pytest.mark.whole("makes very large values")
def test_many_fields_fit_on_a_screen():
    lines = repr(wide()).splitlines()
    assert len(lines) == 4
    assert all(len(line) < 240 for line in lines)
    assert "more}" in lines[0]
    assert lines[1].endswith("...},")
    nested = Dense([3], {"inner": wide()})
    assert all(len(line) < 240 for line in repr(nested).splitlines())


def test_long_values_are_cut():
    value = Dense(
        [1],
        {
            "text": ["x" * 1_000_000],
            "list": tf.RaggedTensor.from_row_splits(tf.range(1_000_000), [0, 1_000_000]),
            "dense": tf.zeros([1, 1_000_000]),
        },
    )
    assert len(repr(value)) < 300


def test_only_what_is_shown_is_read(monkeypatch):
    read = []

    plain = type(tf.range(1)).numpy

    def numpy(tensor):
        read.append(tensor.shape.num_elements())
        return plain(tensor)

    value = Dense([100_000], {"x": tf.zeros([100_000, 50]), "n": tf.range(100_000)})
    monkeypatch.setattr(type(tf.range(1)), "numpy", numpy)
    repr(value)
    value._repr_html_()
    assert read
    assert max(read) == 1


def test_a_value_of_a_graph_shows_its_schema():
    seen = []

    @tf.function
    def look(value):
        seen.extend([repr(value), value._repr_html_()])
        return value["title"]

    look(recipes())
    assert seen[0].startswith("<StructuredTensor shape=(2,) {title: string")
    assert "\n" not in seen[0]
    assert "<table>" not in seen[1]


def test_a_type_that_fails_to_show_itself_is_named():
    class Shy:
        def __init__(self, x):
            self.x = x

        def __tf_type_spec__(self):
            return ShySpec(self.x.shape)

        def __getitem__(self, key):
            raise RuntimeError

    class ShySpec(xt.StackableTypeSpec):
        value_type = Shy

        def __init__(self, shape):
            self.shape = tf.TensorShape(shape)

        component_specs = property(lambda self: (tf.TensorSpec(self.shape),))

        def to_components(self, value):
            return (value.x,)

        def from_components(self, components):
            return Shy(*components)

        def serialize(self):
            return (self.shape,)

    text = repr(Dense([2], {"id": [1, 2], "shy": Shy(tf.zeros([2]))}))
    assert text.splitlines()[1:] == [" [<DenseStructuredTensor>,", "  <DenseStructuredTensor>]>"]


def test_names_and_strings_keep_their_line():
    text = repr(Dense([1], {NASTY: [NASTY]}))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("\n") <= 1


# The tree.


def test_the_tree_is_its_repr_and_looks_into_values():
    tree = xt.struct.tree(recipes())
    assert repr(tree) == str(tree)
    assert repr(tree).splitlines() == [
        *("records (2,)", "├── title: string", "├── stars: int32 or null", "├── amount: union"),
        *("│   ├── float: float32", "│   └── record: record", "│       └── cups: int32"),
        *("└── steps: list of records", "    └── minutes: int32"),
    ]
    assert tree == xt.struct.tree(recipes().__tf_type_spec__())
    assert hash(tree) == hash(xt.struct.tree(recipes()))
    assert tree != xt.struct.tree(steps())


def test_the_tree_looks_into_masked_records_and_extension_types():
    graph = xt.types.TensorDigraph([0], [1], {"mass": [1.0, 2.0]})
    graphs = xt.types.TensorDigraph.batch([graph, graph])
    value = Dense([2], {"author": MaskedTensor(Dense([2], {"age": [1, 2]}), [True, False]),
                        "graph": graphs})  # fmt: skip
    lines = repr(xt.struct.tree(value)).splitlines()
    assert lines[:4] == [
        *("records (2,)", "├── author: record or null", "│   └── age: int32"),
        "└── graph: TensorDigraph",
    ]
    assert "    ├── source: int64[*]" in lines


def test_the_tree_shows_a_type_whose_components_are_nests():
    @xt.auto_composite_tensor
    class Parts(xt.AutoCompositeTensor):
        def __init__(self, x, parts):
            self.x, self.parts = x, parts

    x = tf.constant([1.0, 2.0])
    records = xt.DenseStructuredTensor([2], {"parts": Parts(x, [x, {"a": x}])})
    assert "parts: Parts" in str(xt.struct.tree(records))


def test_the_tree_of_many_fields_says_how_many_are_not_shown():
    assert repr(xt.struct.tree(wide(130))).splitlines()[-1] == "└── ... 30 more"
    assert len(repr(xt.struct.tree(wide(130), max_fields=None)).splitlines()) == 131


# HTML.


class Page(html.parser.HTMLParser):
    """Reads HTML, fails where tags do not match, and keeps the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def test_the_html_has_the_schema_and_the_first_records():
    page = Page(recipes()._repr_html_())
    assert page.tags.count("details") == 4
    assert "steps list of records" in page.text
    assert "b'Snickerdoodles'" in page.text
    assert set(page.tags) <= {
        *("style", "div", "details", "summary", "ul", "li", "span"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert "<table>" not in xt.struct.tree(recipes())._repr_html_()
    Page(xt.struct.tree(recipes())._repr_html_())


def test_the_html_is_escaped():
    nasty = Dense([1], {NASTY: [NASTY], "nested": Dense([1], {NASTY: [1]}),
                        "u": UnionTensor([0], {NASTY: [NASTY]})})  # fmt: skip
    text = nasty._repr_html_()
    assert "script" not in Page(text).tags
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.whole("makes very large values")
def test_the_html_of_many_fields_and_records_is_short():
    assert len(wide()._repr_html_()) < 20_000
    page = Page(Dense([1000], {"x": tf.range(1000)})._repr_html_())
    assert page.tags.count("tr") == 6
    assert "5 of 1,000 records" in page.text
    assert "... 9,900 more" in Page(wide()._repr_html_()).text


@pytest.mark.parametrize("value", [Dense([], {"x": 1}), Dense([2], {}), Dense([0], {"x": []})])
def test_the_html_of_one_record_or_none(value):
    Page(value._repr_html_())


def test_the_style_is_for_light_and_dark_and_for_this_value_only():
    [style] = re.findall(r"<style>(.*?)</style>", recipes()._repr_html_(), re.DOTALL)
    assert "prefers-color-scheme: dark" in style
    selectors = re.findall(r"(?m)^\s*([^@\s{}][^{};]*)\{", style)
    assert selectors
    assert all(part.strip().startswith(".xt-records") for s in selectors for part in s.split(","))


def test_arrow_types_that_dtypes_do_not_say_are_shown():
    schema = pa.schema(
        {
            "when": pa.timestamp("us", "UTC"),
            "price": pa.decimal128(9, 2),
            "days": pa.list_(pa.date32()),
            "kind": pa.dictionary(pa.int8(), pa.string()),
            "title": pa.large_string(),
            "count": pa.int64(),
            "flag": pa.bool_(),
            "steps": pa.list_(pa.struct({"at": pa.time32("s")})),
        }
    )
    spec = xt.spec_from_schema(schema, nulls={"when": "mask"})
    tree = xt.struct.tree(spec)
    assert str(tree).splitlines() == [
        "records (None,)",
        "├── when: int64 (timestamp[us, tz=UTC]) or null",
        "├── price: int64 (decimal128(9, 2))",
        "├── days: int32[*] (date32[day])",
        "├── kind: string (dictionary<values=string, indices=int8, ordered=0>)",
        "├── title: string",
        "├── count: int64",
        "├── flag: bool",
        "└── steps: list of records",
        "    └── at: int32 (time32[s])",
    ]
    assert "int64 (timestamp[us, tz=UTC]) or null" in tree._repr_html_()


def test_arrow_types_of_variants_are_shown():
    moment = pa.field("when", pa.timestamp("us"))
    variants = [
        moment,
        pa.field("days", pa.list_(pa.date32())),
        pa.field("record", pa.struct({"at": pa.time32("s")})),
        pa.field("n", pa.int64()),
    ]
    schema = pa.schema({
        "one": pa.dense_union(variants), "many": pa.list_(pa.sparse_union(variants[:1])),
        "maybe": pa.large_list(pa.dense_union([pa.field("inner", pa.dense_union([moment]))])),
    })  # fmt: skip
    spec = xt.spec_from_schema(schema, nulls={"maybe": "mask"})
    assert str(xt.struct.tree(spec)).splitlines() == [
        "records (None,)",
        "├── one: union",
        "│   ├── when: int64 (timestamp[us])",
        "│   ├── days: int32[*] (date32[day])",
        "│   ├── record: record",
        "│   │   └── at: int32 (time32[s])",
        "│   └── n: int64",
        "├── many: list of unions",
        "│   └── when: int64 (timestamp[us])",
        "└── maybe: list of unions or null",
        "    └── inner: union",
        "        └── when: int64 (timestamp[us])",
    ]
    assert "int64 (timestamp[us])" in xt.struct.tree(spec)._repr_html_()


def test_text_in_a_union_is_shown_as_text():
    data = [{"u": "Crème"}, {"u": [1, "é"]}, {"u": {"t": "é"}}]
    records = xt.struct.constant(data, conflicts="union")
    text = repr(records)
    assert all(each in text for each in ("{u: 'Crème'}", "{u: [1, 'é']}", "{u: {t: 'é'}}"))
    assert repr(records[:0]).endswith("[]>")


def test_the_repr_of_a_union_in_records_says_nothing_twice():
    union = UnionTensor.from_values([1.5, {"cups": 2}, None])
    lists = xt.struct.constant([{"u": [1, "a"]}, {"u": [2]}], conflicts="union")
    masked = Dense([3], {"u": MaskedTensor(union, [True, False, True])})
    for records, said in (
        (Dense([3], {"u": union}), "shape=[3])"),
        (lists, "codes=tf.RaggedTensorSpec([2, None], tf.int8, 1, tf.int64))"),
        (masked, "shape=[3])"),
        (xt.struct.constant({"u": 1}, xt.spec_of(Dense([3], {"u": union})[0])), "shape=[])"),
    ):
        spec = xt.spec_of(records)
        code = repr(spec)
        assert code.count("shape=") + code.count("codes=") == 1
        assert said in code
        assert eval(code) == spec
        assert repr(eval(code)) == code
