"""Files that pages load: served under a name with their digest, so that browsers keep them for good."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from starlette.responses import Response

from headgate.service.problems import NotFound

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


def answer(name: str, accepted: str) -> Response:
    """Send a file."""
    if name not in _PLACES:
        raise NotFound(f"the console has no file {name!r}")
    found = asset(name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" not in accepted:
        return Response(found.body, headers=headers, media_type=found.media_type)
    return Response(found.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=found.media_type)
