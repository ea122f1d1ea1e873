"""Templates, how numbers, times and values are written in them, and the files that pages load."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import time
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.responses import Response

from headgate.core import __version__
from headgate.report.pages import templates_of
from headgate.report.words import size
from headgate.service.problems import NotFound

if TYPE_CHECKING:
    from jinja2 import Environment, Template


_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PLACES = {
    "style.css": ("headgate.report", "style.css"),
    "console.css": ("headgate.console", "static/console.css"),
    "console.js": ("headgate.console", "static/console.js"),
    "charts.js": ("headgate.console", "static/charts.js"),
    "drawing.js": ("headgate.console", "static/drawing.js"),
    "icon.svg": ("headgate.console", "static/icon.svg"),
    "htmx.js": ("headgate.console", "static/vendor/htmx-4.0.1.min.js"),
    "uplot.js": ("headgate.console", "static/vendor/uplot-1.6.32.min.js"),
    "uplot.css": ("headgate.console", "static/vendor/uplot-1.6.32.min.css"),
    "dagre.js": ("headgate.console", "static/vendor/dagre-3.1.3.min.js"),
}
PREFIX = "/console/assets"


class Asset(NamedTuple):
    """A file, ready to be sent."""

    body: bytes
    packed: bytes
    media_type: str
    digest: str


@cache
def asset(name: str) -> Asset:
    """Load a file."""
    package, path = _PLACES[name]
    body = files(package).joinpath(path).read_bytes()
    digest = hashlib.sha256(body).hexdigest()[:12]
    return Asset(body, gzip.compress(body, 9, mtime=0), _TYPES[path[path.rindex(".") :]], digest)


def address_of(name: str) -> str:
    """Return where a page finds a file."""
    return f"{PREFIX}/{asset(name).digest}/{name}"


def answer_asset(name: str, accepted: str) -> Response:
    """Send a file."""
    if name not in _PLACES:
        raise NotFound(f"the console has no file {name!r}")
    file = asset(name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" not in accepted:
        return Response(file.body, headers=headers, media_type=file.media_type)
    return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.media_type)


_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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


def packed(value: Any) -> str:
    """Write something as JSON inside a script's text: no tag can end it."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


@cache
def _environment() -> Environment:
    jinja = templates_of("headgate.console", "templates")
    jinja.filters |= {each.__name__: each for each in (size, span, count, share, moment, shown, written)}
    from headgate.console.view import place_of

    jinja.globals |= {"asset": address_of, "place": place_of, "version": __version__, "now": time.time}
    return jinja


def template(name: str) -> Template:
    """Load a template."""
    return _environment().get_template(name)


def render(name: str, **values: Any) -> str:
    """Make a page, or a part of one."""
    return template(name).render(**values)
