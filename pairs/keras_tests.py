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


def main(folder: str) -> int:
    """Runs the tests, and returns the exit status.

    It is 1 if a test fails with the classes of xt.keras only, and 2 if a file cannot be run.
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
        print(f"    {test}\n        {why}")
    return 2 if not_run else 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python -m pairs.keras_tests FOLDER")
    sys.exit(main(sys.argv[1]))
