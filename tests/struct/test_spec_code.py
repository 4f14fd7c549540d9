"""The repr of a spec is code that makes the spec again, for any fields, nulls, unions and names."""

import pyarrow as pa
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples.arrow_strategies import MANY, nullable_schemas, nullable_types

names = st.none() | st.sampled_from(["recipe", "step", "it's", 'a "b"', "ü"])


@st.composite
def specs(draw):
    """Specs of records of any fields: single, dense, ragged, of higher rank, with names."""
    schema = draw(nullable_schemas(nullable_types))
    spec = xt.spec_from_schema(
        schema,
        draw(st.none() | st.integers(0, 3)),
        row_splits_dtype=draw(st.sampled_from([tf.int32, tf.int64])),
        nulls="mask",
    )
    form = draw(st.sampled_from(["vector", "single", "batch", "ragged"]))
    if form == "single":
        return spec.unstacked()
    if form == "batch":
        spec = spec.stacked(draw(st.none() | st.integers(0, 3)))
    if form == "ragged":
        dtype = tf.int64
        if any(pa.types.is_nested(field.type) for field in schema):
            dtype = next(iter(spec._row_splits_dtypes()), tf.int64)
        shape = tf.TensorShape([draw(st.none() | st.just(2)), None])
        spec = xt.RaggedStructuredTensorSpec(shape, spec.unstacked().stacked(None), dtype)
    dims = draw(st.lists(names, min_size=spec.rank, max_size=spec.rank, unique=True))
    return spec.with_dims(tuple(dims)) if any(dims) and hasattr(spec, "with_dims") else spec


@MANY
@given(specs())
def test_the_repr_makes_the_spec_again(spec):
    code = repr(spec)
    again = eval(code, {"xt": xt, "tf": tf})
    assert again == spec
    assert type(again) is type(spec)
    assert again.shape.as_list() == spec.shape.as_list()
    assert again.is_subtype_of(spec)
    assert spec.is_subtype_of(again)
    assert repr(again) == code
