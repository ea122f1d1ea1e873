"""What is wrong with a pipeline file, told without secrets; and values in place of those of the file."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from headgate.brokers.nats.settings import shown
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.settings import Problem

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
_BROKERS = ("nats://", "kafka://")
"""Their addresses may have secrets among their settings, too."""


def without_secrets(text: str) -> str:
    """Return a text whose addresses name no users and passwords.

    >>> without_secrets("no answer from nats://ann:secret@host/EVENTS?token=secret")
    'no answer from nats://host/EVENTS'
    >>> without_secrets("url = 'http://host/?page=2'")
    "url = 'http://host/?page=2'"
    """
    return _ADDRESS.sub(lambda found: _shown(found[0]), text)


def _shown(address: str) -> str:
    return shown(address) if "@" in address or address.startswith(_BROKERS) else address


class PipelineError(HeadgateError):
    """Refuse a pipeline, with all that is wrong about it."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        first, *rest = self.lines
        more = f" (and {len(rest)} more)" if rest else ""
        super().__init__(first + more)

    @property
    def lines(self) -> list[str]:
        """List what is wrong, one line each."""
        return [
            " ".join(f"{self.file}: {without_secrets(problem.text)}".split()) for problem in self.problems
        ]


def read_overrides(entries: Mapping[str, str]) -> dict[str, Any]:
    """Read values by `table.key`; they are written as in the file, and text needs no quotes.

    >>> read_overrides({"match.top": "20", "events.table": "a b.csv", "subscriptions.ranked": "true"})
    {'match.top': 20, 'events.table': 'a b.csv', 'subscriptions.ranked': True}
    """
    found: dict[str, Any] = {}
    for name, text in entries.items():
        try:
            found[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = text
    return found
