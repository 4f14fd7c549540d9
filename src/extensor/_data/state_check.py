"""Checks of the states that are given to a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from extensor._data.earlier_runs import EarlierRuns, runs_from, runs_of
from extensor.errors import DTypeError, FormatError, StructureError

VERSION = 1
VERSION_OF_REST = 2
"""The version of a state within an epoch of which earlier runs have read a part."""

# What states of one dataset may have each for itself.
_OWN = ("version", "epoch", "step", "source", "sources", "ended")

_KINDS = {"shard": (list, tuple), "source": Mapping, "sources": Mapping, "ended": list}


def checked_state(
    state: object,
    own: Mapping[str, Any],
    of: str = "this dataset",
    where: str = "state",
    but: str | None = None,
) -> Mapping[str, Any]:
    """Returns a state.

    Args:
        state: The state that was given.
        own: A state of the dataset.
        of: What the state must be of, for errors.
        where: The name of the state in errors.
        but: A name that may differ.

    Raises:
        DTypeError: If it is no such state (also a TypeError).
        FormatError: If another version wrote it (also a ValueError).
        StructureError: If it is of another dataset (also a ValueError).
    """
    names = [name for name in own if name != "earlier_runs"]
    given = cast("Mapping[str, Any]", state)
    is_state = isinstance(state, Mapping) and all(
        name in given and isinstance(given[name], _KINDS.get(name, object)) for name in names
    )
    if not is_state or list(map(type, given["shard"])) != [int, int]:
        expected = f"a state of {of}, which `xt.data.state` returned"
        fix = "Give the whole dict to the function that made the dataset, and none to its sources."
        raise DTypeError(where, expected, type(state).__name__, fix)
    version = VERSION_OF_REST if "earlier_runs" in given else VERSION
    if given["version"] != version:
        expected = f"a state of version {version}"
        fix = "Begin again, or use the release of extensor that wrote it."
        raise FormatError(where, expected, f"version {given['version']}", fix)
    for name in names:
        if name not in _OWN and name != but and own[name] != given[name]:
            what = "files, columns or arguments" if name == "digest" else name
            expected = f"{own[name]}, which {of} has"
            received = f"{given[name]}: the state of one with other {what}"
            fix = "Give the arguments with which the state was made."
            if name == "shard":
                fix += " If the number of shards is another, give the states of all as a list."
            raise StructureError(f"{where}, {name}", expected, received, fix)
    if "earlier_runs" in given and runs_of(given["earlier_runs"]) is None:
        expected = "the text that `xt.data.state` returned"
        fix = "Give a state as `xt.data.state` returned it."
        raise StructureError(f"{where}, earlier_runs", expected, "another one", fix)
    if any(type(n) is not int or n < 0 for n in (given["epoch"], given["step"])):
        raise wrong_place(given, None, where)
    return given


def wrong_place(
    state: Mapping[str, Any], steps: int | None, where: str = "state"
) -> StructureError:
    """Returns the error for a state that is no place of the dataset."""
    expected = "an epoch, and a step of 0 " + ("on" if steps is None else f"to {steps}")
    received = f"epoch {state['epoch']}, step {state['step']}"
    return StructureError(where, expected, received, "Give a state as `xt.data.state` returned it.")


def runs_in(state: Mapping[str, Any]) -> EarlierRuns:
    """Returns the earlier runs of a state that was checked."""
    return runs_of(state.get("earlier_runs")) or ()


def checked_states(states: Sequence[object], own: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the states of all shards of a run, in the order of the shards.

    Args:
        states: The states that were given, in any order.
        own: A state of the dataset.

    Raises:
        DTypeError, FormatError, StructureError: As `checked_state`; StructureError also if there
            is not one state of each shard of one run.
    """
    given = [
        checked_state(state, own, where=f"state[{i}]", but="shard")
        for i, state in enumerate(states)
    ]
    if not given:
        fix = "Give the states of all shards, or None to begin at the beginning."
        raise StructureError("state", "the states of all shards of a run", "an empty list", fix)
    by_shard: dict[int, Mapping[str, Any]] = {}
    count = given[0]["shard"][1]
    for number, state in enumerate(given):
        index, own_count = state["shard"]
        where = f"state[{number}], shard"
        if not 0 <= index < own_count:
            expected = f"a number from 0 to {own_count - 1}"
            fix = "Give a state as `xt.data.state` returned it."
            raise StructureError(where, expected, f"shard {index} of {own_count}", fix)
        if own_count != count:
            expected, fix = f"a shard of {count}, as state[0]", "Give the states of one run."
            raise StructureError(where, expected, f"shard {index} of {own_count}", fix)
        if index in by_shard:
            fix = "Give the last state of each shard."
            raise StructureError(where, "each shard once", f"shard {index} twice", fix)
        by_shard[index] = state
    if missing := sorted(set(range(count)) - set(by_shard)):
        expected = f"the states of all {count} shards"
        names = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        received = f"none of shard {names}" if len(missing) == 1 else f"none of shards {names}"
        fix = "Give the state of each shard. That of a shard that has read nothing has step 0."
        raise StructureError("state", expected, received, fix)
    found = [by_shard[index] for index in range(count)]
    first = min(found, key=lambda state: state["epoch"])
    for state in found:
        if runs_in(state) != runs_from(runs_in(first), state["epoch"]):
            shards = f"those of shards {first['shard'][0]} and {state['shard'][0]} of two runs"
            fix = "Give the last state of each shard of the run that ended last."
            raise StructureError("state", "the states of one run", shards, fix)
    return found
