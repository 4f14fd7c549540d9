"""What fit accepts beside datasets: PyDatasets, generators and weights."""

import keras
import numpy as np
import pytest

from tests.keras import kinds
from tests.keras.kinds import BATCH, COUNT, KINDS, RATINGS

pytestmark = pytest.mark.whole("trains models on data of every kind")

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@EACH
def test_weights_of_rows_and_of_classes_count_as_in_plain_keras(kind):
    weights = np.linspace(0, 2, COUNT, dtype=np.float32)
    classes = (RATINGS.numpy() > 0.5).astype(np.int32)
    model, bare = kinds.reused(kinds.twins, kind)
    history = model.fit(
        kind.value, RATINGS, BATCH, shuffle=False, sample_weight=weights, verbose=0
    ).history
    plain = bare.fit(kind.bare_dataset(RATINGS, weights), shuffle=False, verbose=0).history
    assert history == plain
    by_class = {0: 1.0, 1: 3.0}
    history = model.fit(
        kind.value, classes, BATCH, shuffle=False, class_weight=by_class, verbose=0
    ).history
    rows = np.where(classes[:, 0] == 1, 3.0, 1.0).astype(np.float32)
    # Plain Keras takes the classes as floats, so that its step is not traced for integers.
    weighed = kind.bare_dataset(classes.astype(np.float32), rows)
    plain = bare.fit(weighed, shuffle=False, verbose=0).history
    assert history == plain
    history = model.fit(kind.dataset(classes), class_weight=by_class, verbose=0).history
    assert history == bare.fit(weighed, shuffle=False, verbose=0).history


class Pages(keras.utils.PyDataset):
    def __init__(self, kind, **options):
        super().__init__(**options)
        self.kind, self.epochs = kind, 0

    def __len__(self):
        return 3

    def __getitem__(self, index):
        start = index * BATCH
        stop = min(start + BATCH, COUNT)
        return self.kind.rows(start, stop), RATINGS[start:stop]

    def on_epoch_end(self):
        self.epochs += 1


@EACH
def test_py_datasets_and_generators_train_as_datasets_do(kind):
    model, bare = kinds.reused(kinds.twins, kind)
    expected = [bare.fit(kind.bare_dataset(RATINGS), shuffle=False, verbose=0) for _ in range(3)]
    pages = Pages(kind, workers=2)
    first = model.fit(pages, shuffle=False, verbose=0)
    assert pages.epochs

    def endless():
        while True:
            yield from (pages[i] for i in range(3))

    second = model.fit(endless(), steps_per_epoch=3, verbose=0)
    third = model.fit(kind.dataset(RATINGS), verbose=0)
    assert [h.history for h in (first, second, third)] == [h.history for h in expected]
    assert model.evaluate(pages, verbose=0) == bare.evaluate(kind.bare_dataset(RATINGS), verbose=0)
    np.testing.assert_array_equal(
        model.predict(pages, verbose=0), bare.predict(kind.bare_dataset(), verbose=0)
    )
