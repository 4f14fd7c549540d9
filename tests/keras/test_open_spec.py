"""Specs with sizes left open keep all else."""

import extensor as xt
from tests.keras.kinds import KINDS

RECORDS = KINDS["records"].value


def test_the_order_of_fields_is_kept_whichever_was_seen_first():
    class Same(xt.keras.Layer):
        def call(self, inputs):
            return inputs

    orders = [("taste", "title", "minutes"), ("minutes", "taste", "title")]
    for names in orders:
        assert Same()(RECORDS.with_only(*names)).field_names() == names
