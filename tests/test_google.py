"""Errors and retries of Google's clients, without a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensor import _google, errors

exceptions = pytest.importorskip("google.api_core.exceptions", reason="google-api-core is missing")


@given(st.lists(st.integers(1, 9)), st.integers(1, 4), st.integers(1, 20))
def test_commits_hold_all_messages_in_order_and_are_as_large_as_they_may_be(
    sizes, max_count, max_bytes
):
    messages = list(enumerate(sizes))
    found = list(_google.commits(((m, m[1]) for m in messages), max_count, max_bytes))
    assert [message for commit in found for message in commit] == messages
    totals = [sum(size for _, size in commit) for commit in found]
    for commit, total in zip(found, totals, strict=True):
        assert len(commit) == 1 or (len(commit) <= max_count and total <= max_bytes)
    for commit, total, after in zip(found, totals, found[1:], strict=False):
        assert len(commit) == max_count or total + after[0][1] > max_bytes


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (exceptions.Forbidden("no"), errors.AccessError),
        (exceptions.ServiceUnavailable("away"), errors.ServerError),
        (exceptions.ServiceUnavailable("Getting metadata from plugin failed"), errors.AccessError),
        (exceptions.RetryError("late", cause=exceptions.Aborted("x")), errors.ServerError),
        (exceptions.InvalidArgument("syntax"), errors.QueryError),
    ],
)
def test_errors_of_the_clients_are_those_of_extensor(raised, expected):
    with pytest.raises(expected, match="recipes: ") as caught, _google.named_errors("recipes"):
        raise raised
    assert caught.value.__cause__ is raised
    assert type(raised).__name__ in str(caught.value)


def test_a_request_is_repeated_while_the_server_is_away():
    answers = iter([exceptions.ServiceUnavailable("away"), exceptions.Aborted("again"), 3])

    def request():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    policy = _google.retry(5).with_delay(initial=0.001)
    assert policy(request)() == 3
    assert not _google.is_unavailable(exceptions.InvalidArgument("syntax"))
