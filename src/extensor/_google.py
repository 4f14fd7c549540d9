"""Errors and retries of Google's clients, for the formats of Google's databases."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

from extensor.errors import AccessError, QueryError, ServerError

# gRPC reports credentials that do not work as a server that is not available.
_NO_TOKEN = "Getting metadata from plugin failed"

_T = TypeVar("_T")


def commits(
    messages: Iterable[tuple[_T, int]], max_count: int, max_bytes: int
) -> Iterator[list[_T]]:
    """Yields messages in the lists that one commit of a server takes.

    Args:
        messages: Each message, and its number of bytes.
        max_count: The most messages in a list.
        max_bytes: The most bytes of the messages in a list of several.
    """
    found: list[_T] = []
    total = 0
    for message, size in messages:
        if found and (len(found) == max_count or total + size > max_bytes):
            yield found
            found, total = [], 0
        found.append(message)
        total += size
    if found:
        yield found


def retry(seconds: float) -> Any:
    """Returns the retry policy of a request: while the server is not available, for some time.

    Without a policy, the client of Spanner repeats a request for ever.

    Args:
        seconds: When to give up.
    """
    from google.api_core import retry

    return retry.Retry(predicate=is_unavailable, initial=0.1, maximum=5.0, timeout=seconds)


def is_unavailable(error: BaseException) -> bool:
    """Returns whether the same request may succeed later."""
    from google.api_core import exceptions

    passing = (
        exceptions.ServiceUnavailable,
        exceptions.DeadlineExceeded,
        exceptions.InternalServerError,
        exceptions.Aborted,  # by another transaction
    )
    return isinstance(error, passing) and _NO_TOKEN not in str(error)


@contextlib.contextmanager
def named_errors(source: str) -> Generator[None]:
    """Raises the errors of Google's clients as those of extensor.

    Args:
        source: What is read or written, such as the name of a table, for the errors.

    Raises:
        AccessError: If the credentials are wrong, or do not permit the request.
        ServerError: If the server cannot be reached.
        QueryError: If the server does not accept the request.
    """
    from google.api_core import exceptions
    from google.auth import exceptions as auth

    try:
        yield
    except (exceptions.Forbidden, exceptions.Unauthorized, auth.GoogleAuthError) as error:
        raise no_access(source, error) from error
    except exceptions.MethodNotImplemented as error:  # of a query that the server does not support
        raise refusal(source, error) from error
    except (
        exceptions.RetryError,
        exceptions.ServerError,
        exceptions.Cancelled,
        exceptions.Unknown,
    ) as error:
        if _NO_TOKEN in f"{error} {error.__cause__}":
            raise no_access(source, error) from error
        raise no_answer(
            source, error, "Check the address and the server, or give a longer timeout=."
        ) from error
    except exceptions.GoogleAPICallError as error:
        raise refusal(source, error) from error


def no_access(source: str, error: Exception) -> AccessError:
    """Returns the error of a request that is not permitted."""
    expected = "rules and credentials that permit this request"
    fix = "Give the client other credentials, or ask for the permission."
    return AccessError(source, expected, _message(error), fix)


def no_answer(source: str, error: Exception, fix: str) -> ServerError:
    """Returns the error of a server that cannot be reached, or does not send all."""
    return ServerError(source, "a whole answer of the server", _message(error), fix)


def refusal(source: str, error: Exception) -> QueryError:
    """Returns the error of a request that the server does not accept."""
    expected = "a request that the server accepts"
    return QueryError(source, expected, _message(error), "Correct the request.")


def _message(error: Exception) -> str:
    from google.api_core import exceptions

    text = getattr(error, "message", None) or str(error)
    if isinstance(error, exceptions.RetryError):
        text = f"{text} ({error.cause})"
    return f"{type(error).__name__}: {text}"[:600]
