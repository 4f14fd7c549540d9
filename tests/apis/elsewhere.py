"""Rows that need a process which has not used a type yet: `python -m tests.apis.elsewhere FOLDER`.

Loads the models from the folder, and runs the rows that need servers or unused types. Prints an
error text for each row and kind, as JSON; empty if the row passes.
"""

import os
import sys
import types
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf
from packaging.version import parse

from tests.apis.process import Report, at_once, print_and_end

report = Report()


def saved(folder, kind_name, model):
    return str(Path(folder) / kind_name / model)


def not_imported(folder):
    """Returns for each kind what loading says before and after `import extensor`."""
    heard = {}
    for path in sorted(Path(folder).iterdir()):
        heard[path.name] = [_said_when_loading(folder, path.name)]
    import extensor  # noqa: F401

    for name, said in heard.items():
        said.append(_said_when_loading(folder, name))
    return heard


def _said_when_loading(folder, kind_name):
    """Returns the error of loading a model, or the warnings of one that was loaded."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tf.saved_model.load(saved(folder, kind_name, "function"))
        except ValueError as error:
            return str(error)
    return " ".join(sorted({str(w.message) for w in caught if w.category is UserWarning}))


@report.check("threads")
def threads(kind, folder):
    from tests.apis.kinds import assert_same

    value = kind.make(3)

    def meet():
        assert_same(tf.function(kind.doubled)(value), kind.doubled(value))
        assert_same(tf.nest.map_structure(tf.identity, value, expand_composites=True), value)
        [batch] = tf.data.Dataset.from_tensor_slices(value).batch(3)
        assert_same(batch, value)

    at_once(meet)


@report.check("function")
def function(kind, folder):
    from tests.apis.kinds import assert_same

    double = tf.saved_model.load(saved(folder, kind.name, "function")).double
    for size in (2, 3):
        assert_same(double(kind.make(size)), kind.doubled(kind.make(size)))


@report.check("variable")
def variable(kind, folder):
    from tests.apis.kinds import assert_same

    model = tf.saved_model.load(saved(folder, kind.name, "variable"))
    assert_same(model.floats(), tf.constant([6.0, 4.0, 2.0]))


def hub():
    """Imports tensorflow_hub, which takes nothing but `parse_version` from `pkg_resources`."""
    stand_in = types.ModuleType("pkg_resources")
    stand_in.parse_version = parse
    sys.modules.setdefault("pkg_resources", stand_in)
    import tensorflow_hub

    return tensorflow_hub


@report.check("hub, eager", "eager")
@report.check("hub, graph", "graph")
def hub_load(kind, folder, mode):
    from tests.apis.kinds import assert_same
    from tests.apis.matrix import RUN

    double = hub().load(saved(folder, kind.name, "layer"))
    for size in (2, 3):
        result = RUN[mode](lambda value: double(value), kind.make(size))
        assert_same(result, kind.doubled(kind.make(size)))


@report.check("hub layer, eager", "eager")
@report.check("hub layer, graph", "graph")
def hub_layer(kind, folder, mode):
    from tests.apis.kinds import assert_same
    from tests.apis.matrix import RUN

    layer = hub().KerasLayer(saved(folder, kind.name, "layer"), trainable=True)
    value = kind.make(3)

    def call(value):
        with tf.GradientTape() as tape:
            result = layer(value)
            total = tf.reduce_sum(kind.floats(result))
        return result, tape.gradient(total, layer.trainable_variables)

    result, gradients = RUN[mode](call, value)
    assert_same(result, kind.doubled(value))
    assert_same(gradients, [tf.constant(3.0)])


_servers = []  # they serve for as long as somebody holds them


@report.check("data service")
def data_service(kind, folder):
    from tests.apis.kinds import assert_same

    service = tf.data.experimental.service
    if not _servers:
        dispatcher = service.DispatchServer()
        config = service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1])
        _servers.extend([dispatcher, service.WorkerServer(config)])
    target = _servers[0].target
    dataset = tf.data.Dataset.from_tensor_slices(kind.make(4)).batch(2).map(kind.doubled)
    found = dataset.apply(service.distribute("parallel_epochs", target))
    assert_same(list(found), [kind.doubled(kind.make(2)), kind.doubled(kind.make(2, 2))])
    elements = tf.data.Dataset.from_tensor_slices(kind.make(2))
    found = elements.apply(service.distribute("parallel_epochs", target, compression=None))
    assert_same(list(found), kind.examples(0, 1))


def main(folder):
    errors = not_imported(folder)
    print_and_end({"not imported": errors, **report.results(folder)})


if __name__ == "__main__":
    main(sys.argv[1])
