"""Layers for lists and for whole records, in models of nested data."""

from extensor._keras.layers.embedding_bag import EmbeddingBag
from extensor._keras.layers.embedding_bags import EmbeddingBags
from extensor._keras.layers.list_attention import ListAttention
from extensor._keras.layers.list_pooling import ListPooling
from extensor._keras.layers.list_rnn import ListRNN
from extensor._keras.layers.record_features import RecordFeatures
from extensor._keras.layers.time_buckets import TimeBuckets

__all__ = [
    "EmbeddingBag",
    "EmbeddingBags",
    "ListAttention",
    "ListPooling",
    "ListRNN",
    "RecordFeatures",
    "TimeBuckets",
]
