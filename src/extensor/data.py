"""tf.data datasets of structured batches, the fields that a model uses, and statistics."""

from extensor._data.arrays import arrays
from extensor._data.batches import batches
from extensor._data.bucket import bucket
from extensor._data.databases import database, firestore, spanner
from extensor._data.fields_used import fields_used
from extensor._data.files import arrow, csv, json, parquet, proto, tfrecord
from extensor._data.mix import mix
from extensor._data.pack import pack
from extensor._data.padding_share import padding_share
from extensor._data.position import Shuffle
from extensor._data.state import state, steps_per_shard
from extensor._describe.describe import Comparison, Description, describe
from extensor._describe.drift import Drift
from extensor._describe.paths import PathStatistics
from extensor._describe.sketches import Numbers, Words
from extensor._files.part_cache import Cache

__all__ = [
    "Cache",
    "Comparison",
    "Description",
    "Drift",
    "Numbers",
    "PathStatistics",
    "Shuffle",
    "Words",
    "arrays",
    "arrow",
    "batches",
    "bucket",
    "csv",
    "database",
    "describe",
    "fields_used",
    "firestore",
    "json",
    "mix",
    "pack",
    "padding_share",
    "parquet",
    "proto",
    "spanner",
    "state",
    "steps_per_shard",
    "tfrecord",
]
