"""What is wrong with a pipeline file, one line a problem, and what may be shown of secrets."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.brokers.nats.settings import shown
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


class Problem(NamedTuple):
    """One thing that is wrong: where in the file, why, and what would be right."""

    where: str
    """A table and a setting, such as `match.top`; empty for the file as a whole."""
    why: str
    right: str = ""

    @property
    def text(self) -> str:
        """Write it without the file's name.

        >>> Problem("match.tpo", "there is no such setting", "did you mean 'top'?").text
        "match.tpo: there is no such setting: did you mean 'top'?"
        """
        return ": ".join(part for part in (self.where, self.why, self.right) if part)


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


def nearest(name: str, known: Iterable[str]) -> str:
    """Ask whether another name was meant, or list those that there are.

    >>> nearest("tpo", ["top", "mode"])
    "did you mean 'top'?"
    >>> nearest("x", ["top", "mode"])
    'there are top, mode'
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
