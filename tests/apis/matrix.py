"""The rows of the matrix: every generic API, and whether it takes extension values.

A row says what its tests check. `python -m tests.apis.table` writes the rows into `docs/apis.md`.
"""

import dataclasses
from typing import Any

import pytest
import tensorflow as tf

from tests.apis.kinds import KINDS

AS_IS = "as is"
EAGER, GRAPH = "eager", "graph"


@dataclasses.dataclass(frozen=True)
class Row:
    """One API.

    Attributes:
        name: Its public name, and a word on the use of it where there are several.
        group: The heading it stands under.
        how: "as is", "through xt.X", or "not possible: why".
        note: What one should know, or what to do instead.
        modes: Where it can be called at all.
        since: The version of extensor since when the row holds.
    """

    name: str
    group: str
    how: str = AS_IS
    note: str = ""
    modes: tuple[str, ...] = (EAGER, GRAPH)
    since: str = "0.1"


def _rows(group, *rows):
    return [Row(*(r if isinstance(r, tuple) else (r,))[:1], group, **_rest(r)) for r in rows]


def _rest(row):
    rest: dict[str, Any] = {}
    for item in row[1:] if isinstance(row, tuple) else ():
        if isinstance(item, tuple):
            rest["modes"] = item
        else:
            rest["note" if "how" in rest else "how"] = item
    return rest


HUB = (
    "tensorflow_hub 0.16 needs `tf_keras`, and `pkg_resources`, which setuptools 82 and newer do "
    "not contain."
)
ON_DEVICE = (
    "Ragged and sparse components are assembled on the host when an element is read, as for a "
    "tf.RaggedTensor."
)
HAS_NO_GRAPH = (EAGER,)
ONLY_GRAPH = (GRAPH,)

STRATEGIES = {
    "MirroredStrategy": "Two logical devices.",
    "MultiWorkerMirroredStrategy": "Two processes on loopback.",
}

ROWS = [
    *_rows(
        "Functions",
        ("tf.function: arguments and results", ONLY_GRAPH),
        ("tf.function: input_signature", ONLY_GRAPH),
        ("tf.function: get_concrete_function", ONLY_GRAPH),
        ("tf.function: captured values", ONLY_GRAPH),
        ("tf.function: no retrace for equal specs", ONLY_GRAPH),
        ("tf.function: reduce_retracing", AS_IS, "One more trace for all "
         "compatible specs.", ONLY_GRAPH),
        ("tf.function: jit_compile", AS_IS, "XLA supports neither strings nor ragged sizes that "
         "depend on data: leave out such fields."),
        ("tf.py_function", AS_IS, "The result is cast to the spec in `Tout`."),
        ("tf.numpy_function", "through `xt.numpy_function`", "NumPy has no extension values. "
         "The function gets values with eager tensors."),
    ),
    *_rows(
        "Control flow",
        "tf.cond", "tf.case", "tf.switch_case", "tf.while_loop",
        ("tf.while_loop: shape_invariants", AS_IS, "The invariant is a spec."),
        "autograph: if", "autograph: for", "autograph: while",
        ("tf.map_fn", AS_IS, "Each result is cast to the spec in `fn_output_signature`."),
        ("tf.vectorized_map", AS_IS, "TensorFlow cannot vectorize results with ragged fields: use "
         "`tf.map_fn`."),
        ("tf.scan", "through `xt.scan`", "tf.scan converts its arguments to tensors."),
        ("tf.foldl", "through `xt.foldl`", "tf.foldl converts its arguments to tensors."),
        ("tf.foldr", "through `xt.foldr`", "tf.foldr converts its arguments to tensors."),
    ),
    *_rows(
        "Gradients",
        ("tf.GradientTape.gradient: sources", AS_IS, "The gradient is a value of the same type: "
         "floating point components are replaced by gradients, all others are kept."),
        "tf.GradientTape.gradient: targets",
        "tf.GradientTape.gradient: output_gradients",
        "tf.GradientTape.gradient: nested tapes",
        ('tf.GradientTape.gradient: unconnected_gradients="zero"', AS_IS, "Without extensor this "
         "ends the process."),
        ("tf.GradientTape.jacobian", AS_IS, "The type of the source must stack: the result stacks "
         "one gradient for each number in the target."),
        ("tf.GradientTape.batch_jacobian", "not possible: components need not have a row for each "
         "row of the target", "Give one component, `tape.batch_jacobian(y, value.field)`, or take "
         "the jacobian."),
        ("tf.gradients", ONLY_GRAPH),
        "tf.custom_gradient",
        ("tf.py_function: gradients", AS_IS, "First-order only, as with tensors. Components that "
         "are not floating point have no gradient."),
        ("tf.recompute_grad", "through `xt.recompute_grad`", "tf.recompute_grad copies every "
         "argument with an op for tensors."),
        ("tf.autodiff.ForwardAccumulator", "through `xt.ForwardAccumulator`", "TensorFlow's "
         "own class watches only tensors."),
    ),
    *_rows(
        "Values",
        "tf.identity", "tf.stop_gradient", "tf.group",
        ("tf.tuple", "through `xt.tuple`", "In a graph tf.tuple converts its arguments to "
         "tensors."),
        ("tf.print", "through `xt.print`", "In a graph tf.print shows the value at trace time."),
        ("tf.debugging.assert_*", AS_IS, "Pass one component, or all: "
         "`xt.nest.flatten(value, expand_composites=True)`."),
        ("tf.convert_to_tensor", "not possible: a value is several tensors", "Pass the components: "
         "`xt.nest.flatten(value, expand_composites=True)`."),
        ("tf.Variable(value)", "not possible: a variable is one tensor", "Put a tf.Variable in "
         "a field."),
        ("tf.Variable in a field: read", AS_IS),
        ("tf.Variable in a field: assign", AS_IS, "To assign to a variable of an argument, its "
         "component spec must be a VariableSpec."),
        ("copy.copy", HAS_NO_GRAPH), ("copy.deepcopy", HAS_NO_GRAPH), ("pickle", HAS_NO_GRAPH),
        ("threads: first use of a type in eight threads at once", HAS_NO_GRAPH),
    ),
    *_rows(
        "Models",
        ("tf.Module: variables", HAS_NO_GRAPH),
        ("tf.train.Checkpoint", AS_IS, "For a tf.Module with values in its attributes, also in "
         "lists, tuples or dicts. The variables of a value are saved by the names of their "
         "components.",
         HAS_NO_GRAPH),
        ("tf.train.Checkpoint(value)", "not possible: a value is not a trackable object", "Put "
         "it in an attribute of a tf.Module.", HAS_NO_GRAPH),
        ("tf.saved_model: arguments and results", AS_IS, "Loaded by another process.", ONLY_GRAPH),
        ("tf.saved_model: variables in values", AS_IS, "Loaded by another process.", ONLY_GRAPH),
        ("tf.saved_model: a type that was not imported", AS_IS,
         "If extensor is imported, values are stand-ins with the components of the type, and a "
         "warning names the module to import. If it is not, TensorFlow's own error contains the "
         "registered name.", ONLY_GRAPH),
        ("tf.saved_model: a type that was not registered", "not possible: a SavedModel stores "
         "specs by name", "The error names the spec. Register it with `xt.register_type_spec`; "
         "`xt.extension_type` does this automatically.", ONLY_GRAPH),
        ("tensorflow_hub.load", AS_IS, HUB),
        ("tensorflow_hub.KerasLayer", AS_IS, "It uses Keras 2. The spec of a symbolic input must "
         "have a `shape`."),
    ),
    *_rows(
        "tf.data",
        "Dataset.from_tensors", "Dataset.from_tensor_slices",
        ("tf.data.experimental.from_list", AS_IS, "Elements are cast to their common type."),
        "Dataset.map", "Dataset.batch",
        ("Dataset.from_generator", AS_IS, "Elements are cast to the spec in "
         "`output_signature`."),
        "Dataset.unbatch",
        ("Dataset.ragged_batch", AS_IS, "Dense components of unknown size become ragged, if the "
         "type supports that; dense records become ragged records."),
        "Dataset.rebatch",
        ("Dataset.padded_batch", AS_IS, "Dense components are padded to the longest. "
         "`padded_shapes` and `padding_values` of an extension value are one for all its "
         "components, or a nest like its components, from which any may be left out. Ragged and "
         "sparse components are not padded; a row of a ragged tensor with a given shape becomes "
         "dense."),
        ("Dataset.window", AS_IS, "A window is one dataset of values."),
        "Dataset.shuffle", "Dataset.repeat", "Dataset.take", "Dataset.skip", "Dataset.shard",
        "Dataset.filter", "Dataset.zip", "Dataset.enumerate", "Dataset.interleave",
        "Dataset.flat_map", "Dataset.concatenate", "Dataset.prefetch",
        ("tf.data.experimental.copy_to_device", AS_IS, ON_DEVICE, HAS_NO_GRAPH),
        ("tf.data.experimental.prefetch_to_device", AS_IS, ON_DEVICE, HAS_NO_GRAPH),
        "Dataset.cache: in memory", "Dataset.cache: in a file", "Dataset.snapshot",
        ("Dataset.save, Dataset.load", HAS_NO_GRAPH),
        "Dataset.scan", "Dataset.reduce", "Dataset.group_by_window",
        ("Dataset.bucket_by_sequence_length", AS_IS, "Pads as `padded_batch` does."),
        "Dataset.sample_from_datasets", "Dataset.choose_from_datasets",
        ("Dataset.unique", AS_IS, "Elements are equal if all their components are equal "
         "bit by bit."),
        ("Dataset.as_numpy_iterator", AS_IS, "A value becomes the result of its `numpy()` method "
         "(for a StructuredTensor a dict of its fields); without the method, a nest of its "
         "components as arrays. Static data is in `element_spec`; it is the same for all elements.",
         HAS_NO_GRAPH),
        "Dataset.get_single_element",
        "tf.experimental.Optional",
        ("tf.data service", AS_IS, "A row of ragged values needs `compression=None`, as "
         "for a tf.RaggedTensor.", HAS_NO_GRAPH),
    ),
    *_rows(
        "tf.distribute",
        *(
            (strategy + use, *more)
            for strategy, where in STRATEGIES.items()
            for use, *more in (
                (".run", AS_IS, f"{where} Values as arguments, captured values and results."),
                (": per-replica values, experimental_local_results",),
                (".experimental_distribute_dataset", HAS_NO_GRAPH),
                (".distribute_datasets_from_function", HAS_NO_GRAPH),
                (": a loop over a distributed dataset", AS_IS, "A replica without data gets "
                 "an empty batch."),
                (".reduce, gather: components", AS_IS, "Also all_reduce and all_gather of a "
                 "ReplicaContext."),
                (".reduce(value), gather(value)", "not possible: TensorFlow cannot know which "
                 "components may be summed or concatenated", "Return components from the "
                 "function of the replicas, or get the values with `experimental_local_results`."),
                (": tf.Variable in a field", AS_IS, "A declared field and an argument of "
                 "`auto_composite_tensor` keep a distributed variable. It is accepted where the "
                 "spec has a tensor. A StructuredTensor reads it when it is created."),
            )
        ),
        ("ParameterServerStrategy.run", AS_IS, "Two workers and a parameter server on loopback; "
         "scheduled by a ClusterCoordinator.", ONLY_GRAPH),
        ("ClusterCoordinator.create_per_worker_dataset", ONLY_GRAPH),
    ),
]  # fmt: skip

BY_NAME = {row.name: row for row in ROWS}

TESTED: dict[str, set[tuple[str, str]]] = {}
"""For each row the kinds and modes that a test was written for."""


def eagerly(function, *args):
    """Calls a function as it is."""
    return function(*args)


def in_graph(function, *args):
    """Calls a function inside tf.function."""
    return tf.function(function)(*args)


RUN = {EAGER: eagerly, GRAPH: in_graph}


def row(name, *more):
    """Makes a test one of a row: it runs for every kind, and eagerly and in a graph.

    The test takes `kind`, and `run`, which calls a function in either mode. A test of several rows
    (of the same modes) takes the `name` of one too.
    """
    modes = BY_NAME[name].modes

    def decorate(test):
        for tested in (name, *more):
            assert BY_NAME[tested].modes == modes
            TESTED.setdefault(tested, set()).update((k.name, m) for k in KINDS for m in modes)
        if more:
            test = pytest.mark.parametrize("name", [name, *more])(test)
        test = pytest.mark.parametrize("run", [RUN[m] for m in modes], ids=modes)(test)
        return pytest.mark.parametrize("kind", KINDS, ids=str)(test)

    return decorate
