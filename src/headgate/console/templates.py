"""Templates, and how numbers, times and values are written in them."""

from __future__ import annotations

import datetime as dt
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from headgate.console.assets import address_of
from headgate.core import __version__

if TYPE_CHECKING:
    from jinja2 import Template

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def size(value: float) -> str:
    """Write a number of bytes.

    >>> size(900), size(1536), size(3 << 30)
    ('900 B', '1.5 KiB', '3.0 GiB')
    """
    for unit in _UNITS:
        if value < 1_024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1_024
    raise AssertionError(value)


def span(seconds: float) -> str:
    """Write how long something lasts.

    >>> span(0.02), span(75), span(90_000)
    ('20 ms', '1 min 15 s', '1 d 1 h')
    """
    if seconds < 1:
        return f"{1_000 * seconds:.0f} ms"
    left, parts = int(seconds), list[str]()
    for length, unit in _SPANS:
        if left >= length and len(parts) < 2:
            parts.append(f"{left // length} {unit}")
            left %= length
    return " ".join(parts)


def count(value: float | None) -> str:
    """Write a number for people.

    >>> count(1234567), count(0.123456), count(None)
    ('1,234,567', '0.123', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"


def share(value: float | None) -> str:
    """Write a share as a percentage.

    >>> share(0.5), share(0.00012), share(None)
    ('50 %', '0.012 %', '-')
    """
    return "-" if value is None else f"{100 * value:.3g} %"


def moment(value: dt.datetime | float | None) -> str:
    """Write a time: seconds since 1970, or a date.

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    if value is None:
        return ""
    when = value if isinstance(value, dt.datetime) else dt.datetime.fromtimestamp(value, dt.UTC)
    return when.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def shown(value: Any) -> str:
    """Write a value of an event.

    >>> shown(None), shown("a"), shown({"b": 1})
    ('NULL', '"a"', '{"b":1}')
    """
    return "NULL" if value is None else msgspec.json.encode(value, enc_hook=str).decode()


def written(value: Any) -> str:
    """Write something as JSON that people read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("headgate.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "size": size,
        "span": span,
        "count": count,
        "share": share,
        "moment": moment,
        "shown": shown,
        "written": written,
    }
    from headgate.console.view import place_of

    found.globals |= {"asset": address_of, "place": place_of, "version": __version__, "now": time.time}
    return found


def template(name: str) -> Template:
    """Load a template."""
    return _environment().get_template(name)


def render(name: str, **values: Any) -> str:
    """Make a page, or a part of one."""
    return template(name).render(**values)
