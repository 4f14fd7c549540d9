"""`python -m pairs.keras_tests FOLDER`: Keras's own tests with the classes of xt.keras.

FOLDER is a source of Keras of the installed version, with its tests. Each file of `FILES` runs once
with the classes of Keras, and once with those of xt.keras in their place. The tests of the trainer
need jax.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pairs.compare import compare
from pairs.side import ImportFailedError, Side

FILES = (
    "layers/layer_test.py",
    "models/functional_test.py",
    "models/model_test.py",
    "models/sequential_test.py",
    "ops/function_test.py",
    "ops/node_test.py",
    "trainers/trainer_test.py",
)
CLASSES = Path(__file__).with_name("keras_classes.py")
SECONDS = 600.0

_SEQUENTIAL = "models/sequential_test.py::SequentialTest::test_"
_FUNCTIONAL = "models/functional_test.py::FunctionalTest::test_"
_TRAINER = "trainers/trainer_test.py::TestTrainer::test_"
_NOT_KERAS = "xt.keras.Sequential is a Model, and not a keras.Sequential"

KNOWN = {
    f"{_FUNCTIONAL}basic_flow_multi_input": "the test creates a Functional of Keras itself",
    f"{_FUNCTIONAL}for_functional_in_sequential": _NOT_KERAS,
    f"{_SEQUENTIAL}bad_layer": _NOT_KERAS,
    f"{_SEQUENTIAL}basic_flow_as_a_submodel": _NOT_KERAS,
    f"{_SEQUENTIAL}basic_flow_deferred": _NOT_KERAS,
    f"{_SEQUENTIAL}basic_flow_with_functional_model_as_first_layer": _NOT_KERAS,
    f"{_SEQUENTIAL}basic_flow_with_input": _NOT_KERAS,
    f"{_SEQUENTIAL}basic_flow_with_sequential_model_as_first_layer": _NOT_KERAS,
    f"{_SEQUENTIAL}compute_output_shape": _NOT_KERAS,
    f"{_SEQUENTIAL}errors": _NOT_KERAS,
    f"{_SEQUENTIAL}functional_properties": _NOT_KERAS,
    f"{_SEQUENTIAL}hasattr": _NOT_KERAS,
    f"{_SEQUENTIAL}layers_setter": _NOT_KERAS,
    f"{_SEQUENTIAL}legacy_flow_with_input_shape": _NOT_KERAS,
    f"{_SEQUENTIAL}nested_sequential": _NOT_KERAS,
    f"{_SEQUENTIAL}serialization": _NOT_KERAS,
    f"{_TRAINER}predict_generator_1_eager": _NOT_KERAS,
    f"{_TRAINER}predict_generator_1_jit": _NOT_KERAS,
    f"{_TRAINER}predict_generator_1_non_jit": _NOT_KERAS,
    f"{_TRAINER}predict_generator_50_eager": _NOT_KERAS,
    f"{_TRAINER}predict_generator_50_jit": _NOT_KERAS,
    f"{_TRAINER}predict_generator_50_non_jit": _NOT_KERAS,
}
"""The tests that fail with the classes of xt.keras, and why."""


def main(folder: str) -> int:
    """Runs the tests, and returns the exit status: 1 if a test fails that is not known.

    It is 2 if a file cannot be run.
    """
    root = Path(folder).resolve() / "keras" / "src"
    files = [root / file for file in FILES]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        print(f"[keras-tests] not in this source of Keras: {', '.join(missing)}")
        return 2
    sides = [Side(root, first, SECONDS) for first in (None, str(CLASSES))]
    failed: dict[str, str] = {}
    not_run: list[str] = []
    for file in files:
        try:
            pair = compare(file, *sides)
        except ImportFailedError as error:
            print(f"[keras-tests] {error}")
            return 2
        counts = ", ".join(f"{count} {what}" for what, count in pair.counts().items() if count)
        print(f"[keras-tests] {pair.file}: {counts}", flush=True)
        if not pair.ran():
            print(f"[keras-tests] no test ran: {pair.without[pair.file].why}")
            not_run.append(pair.file)
        failed.update((test, outcome.why) for test, outcome in pair.named.items())
    for test, why in failed.items():
        print(f"    {test}\n        {KNOWN.get(test, why)}")
    ran = {test for test in KNOWN if test.partition("::")[0] not in not_run}
    for test in sorted(ran - failed.keys()):
        print(f"    {test} passes: take it off the list")
    if not_run:
        return 2
    return 1 if failed.keys() - KNOWN.keys() else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python -m pairs.keras_tests FOLDER")
    sys.exit(main(sys.argv[1]))
