"""Errors of requests, as problem+json says them: what, where, why, and what would be right.

    Problem            status and title; the detail is one line
    ├── NotFound       404, or 410 for what was there
    ├── Conflict       409, or 412 for another revision
    ├── Busy           429 and 507: to be tried again after some seconds
    └── Forbidden      401 without a key, 403 without the scope

Errors of the library are problems, too: what cannot be understood is 400, and what is refused 422; what a
site of a network refuses is 409.
"""

from __future__ import annotations

import http
from typing import Any, TypeVar

import msgspec

from headgate.errors import (
    EventError,
    FilterError,
    GraphError,
    HeadgateError,
    NetworkError,
    StorageError,
    SubscriptionError,
    TaxonomyError,
)

_Thing = TypeVar("_Thing")
MEDIA_TYPE = "application/problem+json"


class Problem(HeadgateError):  # noqa: N818 -- as the standard calls it
    """A request that is refused."""

    status = 400

    def __init__(self, detail: str, status: int | None = None, **more: Any) -> None:
        super().__init__(detail)
        if status is not None:
            self.status = status
        self.more = more
        """Further members: `position` in a filter, `errors` of the parts of a request."""
        self.headers: dict[str, str] = {}


class NotFound(Problem):
    """There is no such thing."""

    status = 404


def existing(thing: _Thing | None, what: str) -> _Thing:
    """Return what was asked for; refuses what is not there."""
    if thing is None:
        raise NotFound(f"there is no {what}")
    return thing


class Conflict(Problem):
    """It is there already, or is not as the client knows it."""

    status = 409


class Busy(Problem):
    """It cannot be done now; `after` says in how many seconds to try again."""

    status = 429

    def __init__(self, detail: str, after: float = 1.0, status: int | None = None) -> None:
        super().__init__(detail, status)
        self.headers["Retry-After"] = str(max(1, round(after)))


class Forbidden(Problem):
    """Who asks may not."""

    status = 403


def problem_of(error: HeadgateError) -> Problem:
    """Return the problem that an error of the library is."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StorageError):
        if error.full:
            return Busy(str(error), 30, 507)
        return Problem(str(error), 503)
    if isinstance(error, FilterError):
        position = {} if error.position is None else {"position": error.position}
        return Problem(str(error), 422, **position)
    if isinstance(error, NetworkError):
        return Conflict(str(error))
    if isinstance(error, SubscriptionError | EventError | GraphError | TaxonomyError):
        return Problem(str(error), 422)
    return Problem(str(error), 400)


def body_of(problem: Problem, instance: str) -> bytes:
    """Write a problem."""
    members = {
        "type": "about:blank",
        "title": http.HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": str(problem),
        "instance": instance,
        **problem.more,
    }
    return msgspec.json.encode(members)
