"""mix: batches of several datasets, drawn by weights."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import tensorflow as tf

from extensor._choice import expect_one_of
from extensor._data.mixed_feed import MixedFeed, MixedPlan, Weights
from extensor._data.position import Positioned, checked_seed
from extensor._data.state import feed_of, methods_of_other_batches
from extensor._data.stream import feeds, stream
from extensor._path import Path
from extensor._struct.difference import differences
from extensor.errors import DTypeError, StructureError


def mix(
    sources: Mapping[str, tuple[tf.data.Dataset, float]],
    *,
    seed: int,
    at_end: Literal["stop", "repeat", "rest"] = "stop",
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset of the batches of several datasets, drawn by weights.

    The weights hold over any window, not only on average: of any `n` batches that follow one
    another, a source with the part `w` of the weights has `w * n` batches, up to a difference of
    less than 1 if there are two sources, and of less than 4 with any number of them. The order
    follows from the seed and the shard. Models read all fields of the records.

    Args:
        sources: The datasets, each with its weight, by name. Each is from a function of `xt.data`,
            or made of such a dataset by `map` and other methods that keep its batches. All have one
            element spec. Weights are positive numbers; only their ratios matter.
        seed: An integer that is not negative. The same seed gives the same order.
        at_end: What happens when the last batch of a source was drawn. "stop": the pass ends.
            "repeat": the source begins its next pass; the dataset has no end. "rest": the others go
            on by their weights, until all have ended, so that each batch comes once.
        state: Where the first pass begins, from `xt.data.state` of a mixture. The states of all
            shards of an earlier run, as a list, if the number of shards is another now. Make the
            sources without a state.

    Returns:
        A dataset of the batches. Its cardinality is known if those of the sources are, except if
        `state` lies within an epoch; "repeat" makes it infinite.

    Raises:
        StructureError: If there is no source, or one is not from `xt.data`, does not keep its
            batches, is repeated or given twice; if a weight is not a positive number; if the seed
            is negative; if `at_end` is "rest" and a source has no known number of batches; or if
            `state` is of another mixture (also a ValueError).
        DTypeError: If the element specs differ, `sources` is not a dict of pairs, or `at_end` is
            not one of these (also a TypeError).

    >>> import extensor as xt
    >>> for name in ("web", "books"):
    ...     records = xt.DenseStructuredTensor([60], {"text": [name] * 60})
    ...     xt.write_parquet(records, f"{name}.parquet")
    >>> web, books = (xt.data.parquet(f"{name}.parquet", 6) for name in ("web", "books"))
    >>> mixed = xt.data.mix({"web": (web, 0.75), "books": (books, 0.25)}, seed=1)
    >>> drawn = [batch["text"][0].numpy().decode() for batch in mixed]
    >>> [drawn[i : i + 4].count("books") for i in (0, 1, 2, 3)]
    [1, 1, 1, 1]
    """
    fix = 'Give "stop" to end with the source that ends first.'
    expect_one_of(("stop", "repeat", "rest"), at_end, "xt.data.mix: at_end", fix)
    seed = checked_seed(seed, "xt.data.mix: seed")
    datasets, weights = _checked_sources(sources)
    plans = {name: _plan_of(name, dataset) for name, dataset in datasets.items()}
    _expect_each_once(plans)
    _expect_one_spec(datasets)
    plan = MixedPlan(plans, Weights(weights, seed, at_end))
    methods = (method for each in datasets.values() for method in methods_of_other_batches(each))
    plan.other_order = next(methods, None)
    if state is not None:
        plan.begin_at(state)
    feed = MixedFeed(plan)
    inputs = list(datasets.values())
    if at_end == "repeat":
        inputs += [dataset.repeat() for dataset in inputs]
    mixed = tf.data.Dataset.choose_from_datasets(inputs, stream(feed), at_end != "rest")
    if feed.length is not None:
        mixed = mixed.apply(tf.data.experimental.assert_cardinality(feed.length))
    feeds[mixed] = feed
    return mixed


def _checked_sources(sources: Any) -> tuple[dict[str, tf.data.Dataset], dict[str, float]]:
    """Returns the datasets and their weights, by name."""
    if not isinstance(sources, Mapping):
        expected = "a dict of datasets with their weights"
        fix = 'Give for example {"a": (dataset, 0.7), "b": (other, 0.3)}.'
        raise DTypeError("xt.data.mix: sources", expected, type(sources).__name__, fix)
    datasets: dict[str, tf.data.Dataset] = {}
    weights: dict[str, float] = {}
    for name, pair in cast("Mapping[Any, Any]", sources).items():
        where = f"xt.data.mix: {name}"
        if not isinstance(name, str) or not isinstance(pair, (tuple, list)) or len(pair) != 2:  # pyright: ignore[reportUnknownArgumentType]
            expected = "a name, and a pair of a dataset and its weight"
            fix = 'Give for example "a": (dataset, 0.7).'
            raise DTypeError(where, expected, repr(cast("Any", pair))[:60], fix)
        dataset, weight = cast("tuple[Any, Any]", pair)
        if not isinstance(dataset, tf.data.Dataset):
            fix = "Give the dataset that a function of xt.data returned."
            raise DTypeError(where, "a tf.data.Dataset", type(dataset).__name__, fix)
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not is_number or not 0 < float(weight) < math.inf:
            fix = "Leave the source out if nothing is to be drawn from it."
            raise StructureError(where, "a positive number as the weight", repr(weight)[:60], fix)
        datasets[name], weights[name] = dataset, float(weight)
    if not datasets:
        fix = 'Give for example {"a": (dataset, 0.7), "b": (other, 0.3)}.'
        raise StructureError("xt.data.mix: sources", "at least one source", "none", fix)
    return datasets, weights


def _plan_of(name: str, dataset: tf.data.Dataset) -> Positioned:
    """Returns the plan of a source."""
    where = f"xt.data.mix: {name}"
    feed = feed_of(dataset, where)
    plan, count = feed.plan, int(dataset.cardinality())
    if not isinstance(plan, Positioned):
        fix = "Give the sources of both to one mixture, with weights that are multiplied."
        raise StructureError(where, "a dataset of one source", "a mixture", fix)
    if plan.by_service:
        fix = "Give shard=(index, count)."
        raise StructureError(where, "a source without a service", 'shard="service"', fix)
    if count == tf.data.INFINITE_CARDINALITY:
        fix = 'Give at_end="repeat" to xt.data.mix, in place of repeat().'
        raise StructureError(where, "a dataset that is not repeated", "one without an end", fix)
    if feed.count is not None and count != feed.count:
        received = "a number that is not known" if count < 0 else str(count)
        fix = "Use filter, take, unbatch, batch and repeat after xt.data.mix, not before."
        raise StructureError(where, f"as many batches as are read, {feed.count}", received, fix)
    return plan


def _expect_each_once(plans: Mapping[str, Positioned]) -> None:
    known: dict[int, str] = {}
    for name, plan in plans.items():
        other = known.setdefault(id(plan.position), name)
        if other != name:
            expected = f"another dataset than that of {other}"
            fix = "Make another dataset, with another seed of its shuffle."
            raise StructureError(f"xt.data.mix: {name}", expected, "the same one", fix)


def _expect_one_spec(datasets: Mapping[str, tf.data.Dataset]) -> None:
    """Raises an error if the elements of the sources differ."""
    (first, dataset), *others = datasets.items()
    want = dataset.element_spec
    for name, other in others:
        have: Any = other.element_spec
        if have == want:
            continue
        expected, received = f"the elements of {first}, {want}", str(have)
        fix = "Give both the same batch_size, drop_remainder, schema= and nulls=, or map one."
        are_specs = isinstance(want, tf.TypeSpec) and isinstance(have, tf.TypeSpec)
        if are_specs and (row := next(differences(want, have, Path(), True), None)):
            place = f" at {row.path}" if row.path else ""
            expected, received = f"{row.expected}{place}, as {first}", row.received
        raise DTypeError(f"xt.data.mix: {name}", expected, received, fix)
