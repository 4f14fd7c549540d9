"""Datasets of files of any format."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._data.feed import Feed
from extensor._data.options import Options
from extensor._data.prunable import prunable
from extensor._data.serialize import feed_of_files
from extensor._data.stream import stream
from extensor._streams.read import SOURCES


def dataset_of_files(format: str, paths: Any, options: Options, **own: Any) -> tf.data.Dataset:
    """Returns a dataset of the records of files.

    Args:
        format: The format, one of `SOURCES`.
        paths: The files.
        options: The arguments that all functions of `xt.data` have.
        **own: The arguments that only this format has.
    """
    source = SOURCES[format](paths, options.wanted, **own)
    feed = feed_of_files(format, source, options.wanted, options.passes, own)
    return dataset_of_feed(feed, options)


def dataset_of_feed(feed: Feed, options: Options) -> tf.data.Dataset:
    """Returns a dataset of a feed, which begins at the state, and models may read in part."""
    if options.state is not None:
        feed.plan.begin_at(options.state)
    if not options.is_auto:
        return stream(feed)
    return prunable(stream(feed), lambda fields: stream(feed.with_fields(fields)))
