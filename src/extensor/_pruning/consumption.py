"""Which inputs of a traced graph its results and side effects depend on.

The analysis reads the GraphDef of the graph, whose library has the functions that it calls. It goes
from the results and side effects back to the inputs, through calls, branches and loops. An input is
used in one of two ways:

| use | meaning |
| --- | --- |
| VALUE | the values of the tensor are used |
| SHAPE | only the shape of the tensor is used |

What is not known counts as a use of all values.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

NOTHING, SHAPE, VALUE = 0, 1, 2

# Operations that read only the shape of their inputs.
_SHAPE_OPS = frozenset({"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"})

# Operations whose result has a shape that does not depend on the values of the first input.
_SHAPE_PASSES = frozenset({"Identity", "StridedSlice", "StopGradient"})

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
_LOOPS = frozenset({"While", "StatelessWhile"})

# Operations with side effects. Graphs also list what must run as control outputs.
_EFFECT = re.compile(
    r"Assert|Abort|Print|PrintV2|EagerPyFunc|PyFunc|.*Assign.*|ResourceScatter.*|ResourceApply.*"
    r"|LookupTable(Insert|Remove|Import).*|Write.*|Save.*|.*Enqueue.*|.*Summary|Send|Recv"
)

# The seed that TensorFlow combines with the seed of an operation if there is no global seed.
_DEFAULT_SEED = 87654321


class Consumption:
    """What the results and the side effects of a traced function depend on.

    Args:
        graph: The graph of a concrete function.
        inputs: The names of the operations that are the inputs.
    """

    def __init__(self, graph: tf.Graph, inputs: Iterable[str]) -> None:
        definition = graph.as_graph_def()
        self._library = {one.signature.name: one for one in definition.library.function}
        self._bodies: dict[str, _Body] = {}
        self._known: dict[tuple[str, frozenset[tuple[int, int]]], dict[int, int]] = {}
        self._results = [tensor.name for tensor in graph.outputs]
        effects = [op.name for op in graph.control_outputs]
        self._root = _Body(definition.node, list(inputs), self._results, effects)

    @property
    def result_count(self) -> int:
        """The number of results."""
        return len(self._results)

    def input_uses(self, uses: Mapping[int, int]) -> dict[int, int]:
        """Returns how each used input is used.

        Args:
            uses: How each used result is used, by its number.
        """
        return self._live(self._root, uses)

    def draws_by_place(self) -> bool:
        """Returns whether an operation's random numbers depend on its place in the graph.

        They do if there is a global seed, and the operation has no seed of its own. Then they
        change with the other operations of the graph.
        """
        nodes = [*self._root.nodes.values()]
        nodes += [node for one in self._library.values() for node in one.node_def]
        for node in nodes:
            if "seed" in node.attr and "seed2" in node.attr:
                seed = node.attr["seed"].i
                if seed != _DEFAULT_SEED and (seed or node.attr["seed2"].i):
                    return True
        return False

    def _body(self, name: str) -> _Body | None:
        if name not in self._bodies:
            found = self._library.get(name)
            if found is None:
                return None
            arguments = [argument.name for argument in found.signature.input_arg]
            results = [found.ret[result.name] for result in found.signature.output_arg]
            effects = list(found.control_ret.values())
            self._bodies[name] = _Body(found.node_def, arguments, results, effects)
        return self._bodies[name]

    def _uses_by_function(self, name: str, results: Mapping[int, int]) -> dict[int, int] | None:
        """Returns how a function uses its arguments, or None if that is not known.

        Args:
            name: The name of the function.
            results: How each used result is used, by its number.
        """
        body = self._body(name)
        if body is None:
            return None
        key = name, frozenset(results.items())
        if key not in self._known:
            # A recursive function may use each argument.
            self._known[key] = dict.fromkeys(range(len(body.inputs)), VALUE)
            self._known[key] = self._live(body, results)
        return self._known[key]

    def _live(self, body: _Body, uses: Mapping[int, int]) -> dict[int, int]:
        walk = _Walk(self, body)
        for number, use in uses.items():
            walk.use(body.results[number], use)
        for effect in body.effects:
            walk.run(effect)
        walk.finish()
        return walk.found

    def call_uses(self, node: Any, results: Mapping[int, int]) -> dict[int, int]:
        """Returns how an operation uses its inputs.

        Args:
            node: The NodeDef.
            results: How each used result is used, by its number.
        """
        count = sum(not ref.startswith("^") for ref in node.input)
        every = dict.fromkeys(range(count), VALUE)
        if node.op in _SHAPE_OPS:
            return dict.fromkeys(range(count), SHAPE)
        if node.op in _CALLS:
            found = self._uses_by_function(node.attr["f"].func.name, results)
            return every if found is None else found
        if node.op in _BRANCHES:
            if node.op.endswith("Case"):
                names = [one.name for one in node.attr["branches"].list.func]
            else:
                names = [node.attr[key].func.name for key in ("then_branch", "else_branch")]
            used = {0: VALUE}
            for name in names:
                found = self._uses_by_function(name, results)
                if found is None:
                    return every
                for number, use in found.items():
                    used[number + 1] = max(use, used.get(number + 1, NOTHING))
            return used
        if node.op in _LOOPS:
            return self._loop_uses(node, results, every)
        return every

    def _loop_uses(
        self, node: Any, results: Mapping[int, int], every: dict[int, int]
    ) -> dict[int, int]:
        """Returns how a loop uses its variables, whose number is that of its results."""
        condition = self._uses_by_function(node.attr["cond"].func.name, {0: VALUE})
        if condition is None:
            return every
        live = {**dict.fromkeys(results, VALUE), **dict.fromkeys(condition, VALUE)}
        while True:
            found = self._uses_by_function(node.attr["body"].func.name, live)
            if found is None:
                return every
            if found.keys() <= live.keys():
                return live
            live.update(dict.fromkeys(found, VALUE))


class _Body:
    """The operations of a graph or of a function."""

    def __init__(
        self, nodes: Iterable[Any], inputs: list[str], results: list[str], effects: list[str]
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.places = {name: place for place, name in enumerate(self.nodes)}
        self.inputs = {name: number for number, name in enumerate(inputs)}
        self.results = results
        known = (node.name for node in self.nodes.values() if _EFFECT.fullmatch(node.op))
        self.effects = list(dict.fromkeys([*effects, *known]))


class _Walk:
    """A walk from what is needed in one body to the inputs of the body."""

    def __init__(self, consumption: Consumption, body: _Body) -> None:
        self._consumption = consumption
        self._body = body
        self._todo: list[tuple[int, str]] = []
        self.done: dict[str, dict[int, int]] = {}
        """The operations that run, with how their results are used."""
        self.found: dict[int, int] = {}
        """How each used input is used."""

    def use(self, ref: str, use: int) -> None:
        """Follows a reference to a result of an operation: `name`, `name:0` or `name:out:0`."""
        name, *place = ref.split(":")
        if name in self._body.inputs:
            number = self._body.inputs[name]
            self.found[number] = max(use, self.found.get(number, NOTHING))
            return
        node = self._body.nodes[name]
        if use == SHAPE and node.op in _SHAPE_PASSES:
            for i, inner in enumerate(node.input):
                self._follow(inner, VALUE if i else SHAPE)
            return
        results = self.done.setdefault(name, {})
        number = int(place[-1]) if place else 0
        if results.get(number, NOTHING) < use:
            results[number] = use
            heapq.heappush(self._todo, (-self._body.places[name], name))

    def run(self, name: str) -> None:
        """Follows an operation that must run, whether or not its results are used."""
        if name not in self.done and name not in self._body.inputs:
            self.done[name] = {}
            heapq.heappush(self._todo, (-self._body.places[name], name))

    def finish(self) -> None:
        """Follows all operations to the inputs of the body."""
        while self._todo:
            # The last one first: what uses it comes after it, so that it is followed only once.
            last = heapq.heappop(self._todo)
            if last in self._todo[:1]:
                continue
            _, name = last
            node = self._body.nodes[name]
            uses = self._consumption.call_uses(node, self.done[name])
            for number, ref in enumerate(node.input):
                if ref.startswith("^"):
                    self.run(ref[1:])
                elif number in uses:
                    self._follow(ref, uses[number])

    def _follow(self, ref: str, use: int) -> None:
        if ref.startswith("^"):
            self.run(ref[1:])
        else:
            self.use(ref, use)


def concrete_graph(function: Callable[..., Any], *specs: tf.TypeSpec) -> tf.Graph:
    """Returns the graph of a function for the given specs."""
    return tf.function(function, autograph=False).get_concrete_function(*specs).graph
