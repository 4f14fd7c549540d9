"""Datasets of files of any format."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._data.feed import Feed
from extensor._data.position import Passes
from extensor._data.prunable import prunable
from extensor._data.serialize import feed_of_files
from extensor._data.stream import stream
from extensor._data.wanted import Wanted
from extensor._streams.read import SOURCES


def dataset_of_files(
    format: str, paths: Any, wanted: Wanted, passes: Passes, **own: Any
) -> tf.data.Dataset:
    """Returns a dataset of the records of files.

    Args:
        format: The format, one of `SOURCES`.
        paths: The files.
        wanted: Which records it yields.
        passes: Which batches its passes have.
        **own: The arguments that only this format has.
    """
    source = SOURCES[format](paths, wanted, **own)
    return dataset_of_feed(feed_of_files(format, source, wanted, passes, own), wanted, passes)


def dataset_of_feed(feed: Feed, wanted: Wanted, passes: Passes) -> tf.data.Dataset:
    """Returns a dataset of a feed, which begins at the state, and models may read in part."""
    if passes.state is not None:
        feed.plan.begin_at(passes.state)
    if not wanted.is_auto:
        return stream(feed)
    return prunable(stream(feed), lambda fields: stream(feed.with_fields(fields)))
