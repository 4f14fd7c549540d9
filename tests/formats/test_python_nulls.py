"""Nulls and missing keys of Python data, under the policy `nulls=`."""

from __future__ import annotations

import dataclasses

import pytest

import extensor as xt

constant = xt.struct.constant


@pytest.mark.parametrize(
    ("rows", "nulls", "expected"),
    [
        (
            [{"c": {"x": 1}}, {"c": {"y": 1}}],
            "mask",
            [{"c": {"x": 1, "y": None}}, {"c": {"x": None, "y": 1}}],
        ),
        ([{"a": 1}, {"a": None}], {"a": 7}, [{"a": 1}, {"a": 7}]),
        ([{"a": [1, None]}, {"a": None}], "mask", [{"a": [1, None]}, {"a": None}]),
        ([{"a": [{"b": 1}, None]}, {"a": []}], "mask", [{"a": [{"b": 1}, None]}, {"a": []}]),
    ],
)
def test_nulls_and_missing_keys_follow_the_policy(rows, nulls, expected):
    assert constant(rows, nulls=nulls).to_py() == expected


@dataclasses.dataclass
class Step:
    minutes: float
    tools: list[str]


@dataclasses.dataclass
class Nullable:
    a: int | None
    b: list[float | None]
    c: list[float] | None
    d: Step | None


def test_optional_fields_take_none_and_give_it_back():
    objects = [
        Nullable(1, [1.0, None], None, None),
        Nullable(None, [], [2.0], Step(1.0, ["pot"])),
    ]
    spec = xt.struct.spec_from(Nullable)
    for records in (constant(objects, spec), spec.cast(objects)):
        assert xt.spec_of(records).is_compatible_with(spec)
        assert records.to_objects(Nullable) == objects
