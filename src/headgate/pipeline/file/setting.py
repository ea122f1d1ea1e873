"""One setting of a pipeline file: what it means, which values it can have, and what is wrong with one."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from dataclasses import MISSING, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.brokers.nats.settings import shown
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


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


class Kind(Enum):
    """What a setting's value is, in the words of the documentation."""

    TEXT = "text"
    INPUT = "path, from the file's folder"
    OUTPUT = "path, from `pipeline.directory`"
    INPUTS = "list of paths, from the file's folder"
    WHOLE = "whole number"
    NUMBER = "number"
    FLAG = "true or false"
    NUMBERS = "table of numbers"
    TEXTS = "table of texts"
    PAIR = "two whole numbers"


class Setting(NamedTuple):
    """One setting of one table."""

    table: str
    name: str
    kind: Kind
    default: Any
    """What it is if the file does not say; None if there is nothing then."""
    words: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    required: bool = False
    shown: str = ""
    """The default in words, where it depends on something else."""

    @property
    def value_text(self) -> str:
        """Return what it can be as the documentation writes it.

        >>> Setting("match", "top", Kind.WHOLE, None, "…", least=0).value_text
        'whole number, 0 or more'
        """
        if self.choices:
            return " or ".join(f'`"{choice}"`' for choice in self.choices)
        if self.least is None:
            return self.kind.value
        upto = " or more" if self.most is None else f" to {self.most:,}"
        return f"{self.kind.value}, {self.least:,}{upto}"

    @property
    def default_text(self) -> str:
        """Return the default as the documentation writes it."""
        if self.required:
            return "required"
        if self.shown:
            return self.shown
        return "none" if self.default is None else f"`{_toml(self.default)}`"


def _toml(value: Any) -> str:
    """Write a value as in the file.

    >>> _toml(True), _toml("jsonl"), _toml(1)
    ('true', '"jsonl"', '1')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def made(kind: Kind, words: str, default: Any = None, **more: Any) -> Any:
    """Make a field of a table."""
    return field(default=default, metadata={"kind": kind, "words": words, **more})


def settings_of(table: str, shape: type[Any]) -> tuple[Setting, ...]:
    """List the settings of a table, from the fields of its class."""
    found = []
    for each in fields(shape):
        more = dict(each.metadata)
        default = None if each.default is MISSING else each.default
        found.append(Setting(table, each.name, more.pop("kind"), default, more.pop("words"), **more))
    return tuple(found)


def wrong(setting: Setting, value: Any) -> tuple[str, str] | None:
    """Say why a setting cannot have a value, and what it can have; None if it can.

    >>> from headgate.pipeline.file.settings import SETTINGS
    >>> top = next(each for each in SETTINGS if each.name == "top")
    >>> wrong(top, "ten"), wrong(top, 20)
    (("'ten' is text", 'give a whole number, 0 or more'), None)
    """
    fits, what = _KINDS[setting.kind]
    if not fits(value):
        return f"{value!r} is {_called(value)}", f"give {what}{_range(setting)}"
    if setting.choices and value not in setting.choices:
        return f"{value!r} is none of them", nearest(value, setting.choices)
    for number in value if setting.kind is Kind.PAIR else [value]:
        if (setting.least is not None and number < setting.least) or (
            setting.most is not None and number > setting.most
        ):
            return f"{number!r} is out of range", f"give {what}{_range(setting)}"
    if setting.kind is Kind.PAIR and value[0] > value[1]:
        return f"{value!r} ends before it begins", "give the lesser first"
    return None


def read_overrides(entries: tuple[str, ...]) -> dict[str, Any]:
    """Read `table.key=value` pairs; a value is written as in the file, and text needs no quotes.

    >>> read_overrides(("match.top=20", "events.table=a b.csv", "subscriptions.ranked=true"))
    {'match.top': 20, 'events.table': 'a b.csv', 'subscriptions.ranked': True}
    """
    found: dict[str, Any] = {}
    for entry in entries:
        name, sign, text = entry.partition("=")
        if not sign or not name.strip():
            raise ValueError(entry)
        try:
            found[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = text.strip()
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


_KINDS: dict[Kind, tuple[Callable[[Any], bool], str]] = {
    Kind.TEXT: (_is_text, "text"),
    Kind.INPUT: (_is_text, "a path"),
    Kind.OUTPUT: (_is_text, "a path"),
    Kind.INPUTS: (lambda value: _is_list(value, _is_text), "a list of paths"),
    Kind.WHOLE: (_is_whole, "a whole number"),
    Kind.NUMBER: (_is_number, "a number"),
    Kind.FLAG: (lambda value: isinstance(value, bool), "true or false"),
    Kind.NUMBERS: (
        lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
        "a table of numbers",
    ),
    Kind.TEXTS: (
        lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
        "a table of texts",
    ),
    Kind.PAIR: (lambda value: _is_list(value, _is_whole) and len(value) == 2, "two whole numbers"),
}


def _range(setting: Setting) -> str:
    if setting.least is None:
        return ""
    return (
        f", {setting.least:,} or more"
        if setting.most is None
        else f" from {setting.least:,} to {setting.most:,}"
    )


def _called(value: Any) -> str:
    if isinstance(value, str):
        return "text" if value.strip() else "empty"
    names = {bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), type(value).__name__)
