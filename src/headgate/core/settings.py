"""Settings: a field says once what a setting is, and options, files, checks and docs follow from it.

    @dataclass(frozen=True, kw_only=True)
    class Match(Request):
        top: int | None = setting("only the best K of each event", least=0, metavar="K")
        output: Output = setting("a table of matches")

Its type says what kind of value it is, and whether there may be none. `settings_of(Match)` lists them.
`headgate.cli.options` makes options of a command out of such a class, `read_values` reads a table of a TOML
file, and `file_rows` and `option_rows` write the tables of the docs.
"""

from __future__ import annotations

import math
import re
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from headgate.core.arguments import likeliest
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Names = tuple[str, ...]


AUTO = "auto"
"""A count that is left to Headgate."""


class SettingKind(Enum):
    """What a value is, in the words of the docs about files."""

    TEXT = "text"
    INPUT = "path, from the file's folder"
    OUTPUT = "path, from `pipeline.directory`"
    INPUTS = "list of paths, from the file's folder"
    WHOLE = "whole number"
    COUNT = 'whole number or `"auto"`'
    NUMBER = "number"
    SECONDS = 'seconds, or a time such as `"10m"`'
    SHARE = 'number, or a text such as `"10%"`'
    FLAG = "true or false"
    NUMBERS = "table of numbers"
    TEXTS = "table of texts"
    PAIR = "two whole numbers"

    @property
    def is_path(self) -> bool:
        """Tell whether it is one path or several."""
        return self in {SettingKind.INPUT, SettingKind.INPUTS, SettingKind.OUTPUT}


Input: TypeAlias = str
Output: TypeAlias = str
Count: TypeAlias = int | str
Seconds: TypeAlias = float
Share: TypeAlias = float
_OPTIONAL = " | None"
_KIND_OF = {
    "Input": SettingKind.INPUT,
    "Output": SettingKind.OUTPUT,
    "Count": SettingKind.COUNT,
    "Seconds": SettingKind.SECONDS,
    "Share": SettingKind.SHARE,
    "str": SettingKind.TEXT,
    "int": SettingKind.WHOLE,
    "float": SettingKind.NUMBER,
    "bool": SettingKind.FLAG,
    "Mapping[str, float]": SettingKind.NUMBERS,
    "Mapping[str, str]": SettingKind.TEXTS,
    "tuple[int, int]": SettingKind.PAIR,
    "tuple[str, ...]": SettingKind.INPUTS,
}
"""What an annotation says of the kind."""


@dataclass(frozen=True)
class Setting:
    """One setting of a request."""

    name: str
    """Of the field."""
    kind: SettingKind
    default: Any
    """What it is if nothing is said; None if there is nothing then."""
    help: str
    """What it means: a phrase without a full stop. Docs show its links, the command line does not."""
    more: str = ""
    """What the page on the command line says besides."""
    key: str | None = ""
    """Where it stands in a file, as `table.key`: empty for its name in its job's table, None for nowhere."""
    option: str = ""
    """How it is written on the command line, if not as its name."""
    metavar: str = ""
    listed: Names | Callable[[], Names] = ()
    """The values that it may have, or a call that finds them: kinds of content may come with modules."""
    least: float | None = None
    most: float | None = None
    required: bool = False
    shown: str = ""
    """The default in words, where it depends on something else."""
    needs: str = ""
    """A setting that must be given with it; `mode=relaxed` if it must have that value."""
    only: Names = ()
    """What it is about alone, such as some workloads."""
    called: str = ""
    """What errors call it, and others that go together with it."""
    about: str = ""
    """What its listed values are for, as errors say it."""

    @property
    def where(self) -> str:
        """Return the key in its table of a file."""
        return (self.key or self.name).rpartition(".")[2]

    @property
    def flag(self) -> str:
        """Return the option.

        >>> Setting("fan_out", SettingKind.WHOLE, None, "…").flag
        '--fan-out'
        """
        return self.option or "--" + self.name.replace("_", "-")

    @property
    def choices(self) -> Names:
        """List the values that it may have; none if it may have any."""
        return self.listed() if callable(self.listed) else self.listed

    def given(self, request: object) -> bool:
        """Tell whether a request says another than the default."""
        return bool(getattr(request, self.name) != self.default)


class Request:
    """What is asked of a job, in settings; those that may be None are, by default.

    `table` is where its own settings stand in a file that do not say it.
    """

    def __init_subclass__(cls, table: str = "") -> None:
        for name, kind in cls.__annotations__.items():
            made = cls.__dict__.get(name)
            if isinstance(made, Field):
                if kind.endswith(_OPTIONAL) and made.default is made.default_factory is MISSING:
                    made.default = None
                if table:
                    made.metadata["setting"].setdefault("key", f"{table}.{name}")


def setting(help: str, default: Any = MISSING, **more: Any) -> Any:  # noqa: A002 -- as in click
    """Make a field that is a setting; one without a default is required. See `Setting` for `more`."""
    metadata = {"setting": {"help": help, **more}}
    if default == {} and default is not MISSING:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def settings_of(made: type[Any]) -> tuple[Setting, ...]:
    """List the settings of a class, in their order."""
    settings = []
    for each in fields(made):
        if (metadata := each.metadata.get("setting")) is None:
            continue
        more = dict(metadata)
        kind = _KIND_OF[str(each.type).removesuffix(_OPTIONAL)]
        required = each.default is MISSING and each.default_factory is MISSING
        default = None if each.default is MISSING else each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        settings.append(Setting(each.name, kind, default, more.pop("help"), required=required, **more))
    # What must be given comes first, then places.
    places = (SettingKind.INPUT, SettingKind.OUTPUT)
    return tuple(sorted(settings, key=lambda each: (not each.required, each.kind not in places)))


_NUMBERS = (SettingKind.WHOLE, SettingKind.COUNT, SettingKind.NUMBER, SettingKind.SECONDS, SettingKind.SHARE)


class Problem(NamedTuple):
    """One thing that is wrong: where in a file, why, and what would be right."""

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


def read_values(
    settings: Iterable[Setting], raw: Mapping[str, Any], label: str
) -> tuple[dict[str, Any], list[Problem]]:
    """Read a table of a file: the values by the names of their fields, and all that is wrong with it.

    >>> top = Setting("top", SettingKind.WHOLE, None, "…", least=0)
    >>> read_values([top], {"top": 3}, "match")
    ({'top': 3}, [])
    >>> [problem.text for problem in read_values([top], {"tpo": 3}, "match")[1]]
    ["match.tpo: there is no such setting: did you mean 'top'?"]
    """
    known = {each.where: each for each in settings}
    values: dict[str, Any] = {}
    problems = []
    for key, value in raw.items():
        where = f"{label}.{key}"
        if key not in known:
            problems.append(Problem(where, "there is no such setting", nearest(key, known)))
        elif (problem := wrong(known[key], value)) is not None:
            problems.append(Problem(where, *problem))
        else:
            values[known[key].name] = _read(known[key], value)
    for key, each in known.items():
        if each.required and key not in raw:
            problems.append(Problem(f"{label}.{key}", "it is missing", plain(each.help)))
    return values, problems


def check_values(settings: Iterable[Setting], request: object) -> None:
    """Refuse a request of a program whose values are out of range, or none of those that there are."""
    for each in settings:
        value = getattr(request, each.name)
        judged = each.kind in _NUMBERS or (isinstance(each.listed, tuple) and each.listed)
        if judged and value is not None and (problem := wrong(each, value)) is not None:
            raise TableError(f"{each.name} is {value!r}: {problem[1]}")


def unmet(settings: Iterable[Setting], request: object) -> Iterator[tuple[Setting, Setting, str]]:
    """List settings that are given without what they need: that setting, and the value that it must have."""
    known = {each.name: each for each in settings}
    for each in known.values():
        name, _, value = each.needs.partition("=")
        if name and each.given(request):
            chosen = getattr(request, name)
            if chosen != value if value else not known[name].given(request):
                yield each, known[name], value


def nearest(name: str, known: Iterable[str]) -> str:
    """Ask whether another name was meant, or list those that there are.

    >>> nearest("tpo", ["top", "mode"])
    "did you mean 'top'?"
    >>> nearest("x", ["top", "mode"])
    'there are top, mode'
    """
    names = list(known)
    near = likeliest(name, names)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(names)}"


def wrong(setting: Setting, value: Any) -> tuple[str, str] | None:
    """Say why a setting of a file cannot have a value, and what it can have; None if it can.

    >>> top = Setting("top", SettingKind.WHOLE, None, "…", least=0)
    >>> wrong(top, "ten"), wrong(top, 20)
    (("'ten' is text", 'give a whole number, 0 or more'), None)
    """
    fits, what = _FITS[setting.kind]
    if not fits(value):
        return f"{value!r} is {_called(value)}", f"give {what}{_range(setting)}"
    if setting.choices and value not in setting.choices:
        return f"{value!r} is none of them", nearest(value, setting.choices)
    if setting.kind is SettingKind.COUNT and value == AUTO:
        return None
    read = _read(setting, value)
    for number in read if setting.kind is SettingKind.PAIR else [read]:
        if (setting.least is not None and number < setting.least) or (
            setting.most is not None and number > setting.most
        ):
            return f"{value!r} is out of range", f"give {what}{_range(setting)}"
    if setting.kind is SettingKind.PAIR and value[0] > value[1]:
        return f"{value!r} ends before it begins", "give the lesser first"
    return None


UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def read_seconds(text: str) -> float | None:
    """Read a time; None if it is none.

    >>> read_seconds("90s"), read_seconds("10m"), read_seconds("0.5"), read_seconds("soon")
    (90.0, 600.0, 0.5, None)
    """
    match_ = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    return None if match_ is None else float(match_[1]) * UNITS[match_[2]]


def write_seconds(seconds: float) -> str:
    """Write a time as people do.

    >>> write_seconds(600.0), write_seconds(0.5), write_seconds(90.0)
    ('10m', '0.5', '90')
    """
    units = ((unit, size) for unit, size in reversed(UNITS.items()) if unit and size > 1 and seconds >= size)
    return next((f"{seconds / size:g}{unit}" for unit, size in units if seconds % size == 0), f"{seconds:g}")


def read_share(text: str) -> float | None:
    """Read a part of a whole; None if it is none.

    >>> read_share("10%"), read_share("0.1"), read_share("much")
    (0.1, 0.1, None)
    """
    match_ = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    return None if match_ is None else float(match_[1]) / (100 if match_[2] else 1)


def _read(setting: Setting, value: Any) -> Any:
    """Return a value of a file as the field has it."""
    if isinstance(value, str) and setting.kind in _WRITTEN:
        return _WRITTEN[setting.kind](value)
    return tuple(value) if setting.kind in {SettingKind.INPUTS, SettingKind.PAIR} else value


_WRITTEN = {SettingKind.SECONDS: read_seconds, SettingKind.SHARE: read_share}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _is_written(kind: SettingKind) -> Callable[[Any], bool]:
    return lambda value: _is_number(value) or (isinstance(value, str) and _WRITTEN[kind](value) is not None)


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


_FITS: dict[SettingKind, tuple[Callable[[Any], bool], str]] = {
    SettingKind.TEXT: (_is_text, "text"),
    SettingKind.INPUT: (_is_text, "a path"),
    SettingKind.OUTPUT: (_is_text, "a path"),
    SettingKind.INPUTS: (lambda value: _is_list(value, _is_text), "a list of paths"),
    SettingKind.WHOLE: (_is_whole, "a whole number"),
    SettingKind.COUNT: (lambda value: value == AUTO or _is_whole(value), f"{AUTO!r} or a whole number"),
    SettingKind.NUMBER: (_is_number, "a number"),
    SettingKind.SECONDS: (_is_written(SettingKind.SECONDS), "seconds, or a time such as '10m'"),
    SettingKind.SHARE: (_is_written(SettingKind.SHARE), "a number, or a text such as '10%'"),
    SettingKind.FLAG: (lambda value: isinstance(value, bool), "true or false"),
    SettingKind.NUMBERS: (
        lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
        "a table of numbers",
    ),
    SettingKind.TEXTS: (
        lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
        "a table of texts",
    ),
    SettingKind.PAIR: (lambda value: _is_list(value, _is_whole) and len(value) == 2, "two whole numbers"),
}


def _range(setting: Setting) -> str:
    if setting.least is None:
        return ""
    upto = ", {} or more" if setting.most is None else f" from {{}} to {setting.most:,}"
    return upto.format(f"{setting.least:,}")


def _called(value: Any) -> str:
    if isinstance(value, str):
        return "text" if value.strip() else "empty"
    names = {bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), type(value).__name__)


def plain(words: str) -> str:
    """Write words of the docs without links and code marks, as a terminal shows them.

    >>> plain("a [table](files.md#events) with `id`")
    'a table with id'
    """
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).replace("`", "")
