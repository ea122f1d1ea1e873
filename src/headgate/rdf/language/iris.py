"""IRIs: what is one, and what a relative one means against a base (RFC 3986, section 5)."""

from __future__ import annotations

import re

from pyoxigraph import NamedNode

_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_RELATIVE = re.compile(r"[^:/?#]*(?:[/?#]|\Z)")
_LEADING = re.compile(r"\A(?:\.\.?(?:/|\Z))+")
_SEGMENT = re.compile(r"/[^/]*|[^/]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def is_iri(text: str) -> bool:
    """Tell whether a text is an IRI with a scheme, as the readers of events see it.

    >>> is_iri("http://example.org/x"), is_iri("x"), is_iri("http://example.org/%zz")
    (True, False, False)
    """
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


def is_absolute(text: str) -> bool:
    """Tell whether a text begins with a scheme."""
    return _SCHEME.match(text) is not None


def is_relative(text: str) -> bool:
    """Tell whether a text has no colon where a scheme would have it: one that is bad is not relative.

    >>> is_relative("a/b:c"), is_relative("1:b")
    (True, False)
    """
    return _RELATIVE.match(text) is not None


def resolve(base: str, reference: str) -> str:
    """Resolve a relative reference against an absolute base; an absolute one stays as it is, dots and all.

    So it is with the readers of events, and a filter has to find what they read.

    >>> resolve("http://example.org/a/b?q#f", "../c"), resolve("http://example.org/a/b?q#f", "#x")
    ('http://example.org/c', 'http://example.org/a/b?q#x')
    """
    if is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        return _join(base_scheme, authority, _without_dots(path), query, fragment)
    if not path:
        return _join(base_scheme, base_authority, base_path, query or base_query, fragment)
    if not path.startswith("/"):
        above = base_path[: base_path.rfind("/") + 1]
        path = (above or ("/" if base_authority is not None else "")) + path
    return _join(base_scheme, base_authority, _without_dots(path), query, fragment)


def _split(text: str) -> tuple[str | None, str | None, str, str, str]:
    found = _PARTS.fullmatch(text)
    assert found is not None, "every text has these parts"
    scheme, authority, path, query, fragment = found.groups()
    return scheme, authority, path, query or "", fragment or ""


def _join(scheme: str | None, authority: str | None, path: str, query: str, fragment: str) -> str:
    before = f"{scheme}:" if authority is None else f"{scheme}://{authority}"
    return f"{before}{path}{query}{fragment}"


def _without_dots(path: str) -> str:
    """Take out the segments . and .. as section 5.2.4 says."""
    if "." not in path:
        return path
    path = _LEADING.sub("", path)
    segments = _SEGMENT.findall(path)
    kept: list[str] = []
    for segment in segments:
        if segment == "/..":
            del kept[-1:]
        elif segment != "/.":
            kept.append(segment)
    if segments and segments[-1] in ("/.", "/.."):
        kept.append("/")
    return "".join(kept)
