"""Options of commands, made of the settings of a request; `headgate.core.settings` says what a setting is."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from headgate.core.arguments import likeliest
from headgate.core.settings import (
    AUTO,
    SettingKind,
    plain,
    read_seconds,
    read_share,
    settings_of,
    unmet,
    write_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from headgate.core.settings import Setting

    Decorated = Callable[..., Any]


class Choice(click.Choice[str]):
    """One of some names, with the one that was likeliest meant by another."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Say what the names are."""
        meant = likeliest(str(value), self.choices)
        hint = "" if meant is None else f" Did you mean {meant!r}?"
        return super().get_invalid_choice_message(value, ctx) + hint


class Named(click.ParamType[Any]):
    """One of some names that are looked up when one is given: kinds of content may come with modules."""

    name = "name"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Show the names."""
        return click.Choice(list(self._names())).get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the names that begin as what is typed."""
        return Choice(list(self._names())).shell_complete(ctx, param, incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse another."""
        return Choice(list(self._names())).convert(value, param, ctx)


_PLACES = {
    "TABLE": "file",
    "FILE": "file",
    "JSON": "file",
    "PATH": "file",
    "PLACE": "file",
    "DIRECTORY": "dir",
}
"""What shells complete for options that say so."""


class Place(click.types.StringParamType):
    """A text that names a file or a directory, which shells complete."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        del ctx, param
        return [CompletionItem(incomplete, type=self._kind)]


def complete_places(options: Iterable[click.Parameter]) -> None:
    """Let shells complete the names of files where an option or argument says that it takes one."""
    for option in options:
        if option.type is click.STRING and option.metavar in _PLACES:
            option.type = Place(_PLACES[option.metavar])


class _Written(click.ParamType[float]):
    """A number that people write with a unit."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        time = setting.kind is SettingKind.SECONDS
        self.name = "time" if time else "share"
        self._read = read_seconds if time else read_share
        self._right = "write 30, 90s, 10m, 2h or 1d" if time else "write 0.1 or 10%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = self._read(str(value))
        if number is None or (self._setting.most is not None and number > self._setting.most):
            self.fail(f"{value!r} is not a {self.name}: {self._right}", param, ctx)
        return number


class _Count(click.IntRange):
    """A whole number, or `auto`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == AUTO:
            return AUTO
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number from {self.min} to {self.max:,}, nor {AUTO!r}", param, ctx)


def _type(setting: Setting) -> Any:
    """Return what click checks a value with."""
    if callable(setting.listed):
        return Named(setting.listed)
    if setting.listed:
        return Choice(setting.listed)
    if setting.kind in {SettingKind.SECONDS, SettingKind.SHARE}:
        return _Written(setting)
    if setting.kind is SettingKind.COUNT:
        return _Count(_whole(setting.least), _whole(setting.most))
    bounded = setting.least is not None or setting.most is not None
    if setting.kind in {SettingKind.WHOLE, SettingKind.PAIR}:
        return click.IntRange(_whole(setting.least), _whole(setting.most)) if bounded else int
    if setting.kind is SettingKind.NUMBER:
        return click.FloatRange(setting.least, setting.most) if bounded else float
    return str


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


_METAVARS = {
    SettingKind.INPUT: "TABLE",
    SettingKind.OUTPUT: "TABLE",
    SettingKind.INPUTS: "FILE",
    SettingKind.WHOLE: "N",
    SettingKind.NUMBER: "NUMBER",
    SettingKind.SECONDS: "TIME",
    SettingKind.SHARE: "PART",
    SettingKind.NUMBERS: "NAME=NUMBER",
    SettingKind.TEXTS: "NAME=VALUE",
    SettingKind.PAIR: "LEAST MOST",
}
REPEATED = (SettingKind.INPUTS, SettingKind.NUMBERS, SettingKind.TEXTS)


def metavar(setting: Setting) -> str | None:
    """Say what follows the option; None for a flag, and for click's own list of choices."""
    return (
        None
        if setting.listed or setting.kind is SettingKind.FLAG
        else setting.metavar or _METAVARS.get(setting.kind)
    )


def flag_of(setting: Setting) -> str:
    """Return the option that says another than the default."""
    changed = setting.kind is SettingKind.FLAG and setting.default is True
    return f"--no-{setting.flag.removeprefix('--')}" if changed else setting.flag


def option(setting: Setting) -> Callable[[Decorated], Decorated]:
    """Make the option of a setting."""
    more: dict[str, Any] = {"required": setting.required}
    names = [setting.flag, setting.name]
    if setting.kind is SettingKind.FLAG:
        more |= {"default": setting.default}
        if setting.default is False:
            more["is_flag"] = True
        else:
            names[0] = f"{setting.flag}/--no-{setting.flag.removeprefix('--')}"
    else:
        more |= {"type": _type(setting), "metavar": metavar(setting)}
        if setting.kind in REPEATED:
            more["multiple"] = True
        elif setting.default is not None:
            more |= {"default": setting.default, "show_default": not setting.shown}
            if setting.kind is SettingKind.SECONDS:
                more["show_default"] = write_seconds(setting.default)
        if setting.kind is SettingKind.PAIR:
            more["nargs"] = 2
    return click.option(*names, help=help_of(setting), cls=_Option, setting=setting, **more)


class _Option(click.Option):
    """An option that knows its setting."""

    def __init__(self, *names: Any, setting: Setting, **more: Any) -> None:
        super().__init__(*names, **more)
        self.setting = setting


def help_of(setting: Setting) -> str:
    """Write what the command line says of a setting: a sentence, and the default in words."""
    words = plain(setting.help)
    if setting.kind in REPEATED:
        words += "; may be repeated"
    default = f"  [default: {plain(setting.shown)}]" if setting.shown else ""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('…') else '.'}{default}"


def options_of(
    made: Any, settings: Iterable[Setting] | None = None, *, without: Collection[str] = ()
) -> Callable[[Decorated], Decorated]:
    """Add an option for each setting of a class, or for those given; the command gets one object of it."""
    settings = settings_of(made) if settings is None else settings
    settings = [each for each in settings if each.name not in without]

    def add(command: Decorated) -> Decorated:
        @wraps(command)
        def run(*requests: Any, **given: Any) -> Any:
            values = {each.name: read_given(each, given.pop(each.name)) for each in settings}
            request = made(**values)
            check_needs(settings, request)
            return command(*requests, request, **given)

        decorated: Decorated = run
        for each in reversed(settings):
            decorated = option(each)(decorated)
        return decorated

    return add


def check_needs(settings: Iterable[Setting], request: object) -> None:
    """Refuse options that are given without what they go with."""
    for each, needed, value in unmet(settings, request):
        raise click.UsageError(f"{flag_of(each)} goes with {needed.flag}{f' {value}' if value else ''}")


def read_given(setting: Setting, value: Any) -> Any:
    """Read pairs such as NAME=VALUE; other values are as they are."""
    if setting.kind not in {SettingKind.NUMBERS, SettingKind.TEXTS}:
        return value
    values: dict[str, Any] = {}
    for entry in value:
        # A name may have the sign in it only where the value, a number, has none.
        name, sign, text = (
            entry.rpartition("=") if setting.kind is SettingKind.NUMBERS else entry.partition("=")
        )
        read: Any = text.strip()
        if setting.kind is SettingKind.NUMBERS:
            try:
                read = float(text)
            except ValueError:
                sign = ""
        if not sign or not name.strip():
            raise click.UsageError(f"{setting.flag} {entry}: write {metavar(setting)}")
        if setting.kind is SettingKind.NUMBERS and name.strip() in values:
            raise click.UsageError(f"{setting.flag} {entry}: is given twice")
        values[name.strip()] = read
    return values or setting.default
