"""Passes that read one part ahead: which parts are read when, and when the source is closed."""

import threading

import pytest
import tensorflow as tf

from extensor._data.ahead import ReadAhead

SECONDS = 60


class Source(ReadAhead):
    """A pass whose parts wait until they are let through. It notes what is read and closed."""

    def __init__(self, parts, length):
        super().__init__(parts)
        self.length = length
        self.events = []
        self.begun = [threading.Event() for _ in range(length + 1)]
        self.may_end = [threading.Event() for _ in range(length + 1)]
        self.later = threading.Event()

    def _read(self, number):
        self.begun[number].set()
        assert self.may_end[number].wait(SECONDS)
        self.events.append(number)
        return tf.data.Dataset.from_tensors(number) if number < self.length else None

    def _close_source(self):
        self.events.append("closed")

    def _close_later(self):
        self.later.set()

    def let_through(self):
        for each in self.may_end:
            each.set()
        return self


def values(dataset):
    return [int(each) for each in dataset]


@pytest.mark.parametrize("parts", [3, float("inf")])
def test_parts_are_read_one_after_another(parts):
    one = Source(parts, 3).let_through()
    assert [values(one.load(number)) for number in range(3)] == [[0], [1], [2]]
    if parts == 3:
        assert not one.is_over
    else:
        assert values(one.load(3)) == []
        assert one.is_over
    one.close()
    assert one.events == [*range(3 if parts == 3 else 4), "closed"]


def test_the_next_part_is_read_in_the_background():
    one = Source(3, 3)
    one.may_end[0].set()
    assert values(one.load(0)) == [0]
    assert one.begun[1].wait(SECONDS)
    one.let_through()
    assert values(one.load(1)) == [1]


def test_nothing_is_read_ahead_on_request():
    one = Source(3, 3).let_through()
    one.reads_ahead = False
    assert values(one.load(1)) == [1]
    one.close()
    assert one.events == [1, "closed"]


def test_any_part_may_be_next():
    one = Source(4, 4).let_through()
    assert [values(one.load(number)) for number in (0, 3, 1)] == [[0], [3], [1]]


def test_a_pass_that_is_closed_while_it_reads_closes_its_source_afterwards():
    one = Source(3, 3)
    one.may_end[0].set()
    one.load(0)
    assert one.begun[1].wait(SECONDS)
    one.close()  # does not wait
    assert one.later.is_set()
    assert one.events == [0]
    one.let_through()
    one.finish()
    assert one.events[:3] == [0, 1, "closed"]
    assert not one.begun[2].is_set()


def test_an_error_of_a_part_is_raised_where_it_is_loaded():
    class Broken(Source):
        def _read(self, number):
            if number == 1:
                raise ValueError("a broken part")
            return super()._read(number)

    one = Broken(3, 3).let_through()
    assert values(one.load(0)) == [0]
    with pytest.raises(ValueError, match="a broken part"):
        one.load(1)
    one.close()
    assert one.events == [0, "closed"]


def test_an_error_of_closing_leaves_the_pass_free():
    class Broken(Source):
        def _close_source(self):
            super()._close_source()
            if self.events.count("closed") == 1:
                raise OSError("the disk is gone")

    one = Broken(3, 3).let_through()
    one.reads_ahead = False
    one.load(0)
    with pytest.raises(OSError, match="gone"):
        one.close()
    one.finish()
    assert one.events == [0, "closed", "closed"]
