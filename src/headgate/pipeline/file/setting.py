"""One setting of a pipeline file: what it can be, what it is by default, and what it means."""

from __future__ import annotations

from dataclasses import MISSING, field, fields
from enum import Enum
from typing import Any, NamedTuple


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
