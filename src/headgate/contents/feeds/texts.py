"""Bytes to the text of a feed: its encoding, and what stands before its first element.

The lines of the text are those of the document, so that places in messages are right.
"""

from __future__ import annotations

import codecs
import re

from headgate.core.event import SECOND_MARK
from headgate.errors import EventError

WINDOWS = "cp1252"
"""What bytes are taken for that are not what they say: most often they are."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_WIDE = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
"""How a document begins that is UTF-16 without a mark."""
_WIDE_NAMES = ("utf16", "utf32", "ucs", "iso10646ucs")
_DECLARED = re.compile(rb"""\s*+<\?xml\s[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._:\-]{1,40})["']""")
_HIDING = {"utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
"""Codecs in which markup can look like text, or that are about something else than text."""
_DECLARATION = re.compile(r"\s*+<\?xml\s[^>]*+>")
_PROLOG = re.compile(r"(?:\s++|<\?.*?\?>|<!--.*?-->)++", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE(?:[^\[\]<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+", re.IGNORECASE)


def text_of(data: str | bytes, notes: dict[str, None]) -> str:
    r"""Return the text of a feed without its XML declaration and its DOCTYPE; `notes` has what was forgiven.

    >>> text_of(b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>', {})
    '<a>é</a>'
    """
    text = _readable(data, notes) if isinstance(data, str) else _decoded(data, notes)
    if text.startswith("\ufeff"):
        raise EventError(f"not a usable feed: {SECOND_MARK}")
    if "\0" in text:
        place = text.index("\0")
        raise EventError(f"not a usable feed: character {place + 1:,} is NUL: send text without NULs")
    if found := _DECLARATION.match(text):
        text = _blank(text, 0, found.end())
    return _without_doctype(text)


def _readable(text: str, notes: dict[str, None]) -> str:
    """Leave out what no encoding holds."""
    text = text.removeprefix("\ufeff")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        notes[f"character {error.start + 1:,} is half of a surrogate pair: read as ?"] = None
        return text.encode(errors="replace").decode()
    return text


def _decoded(data: bytes, notes: dict[str, None]) -> str:
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return _decode(data[len(mark) :], encoding, notes)
    encoding = _WIDE.get(data[:2], "")
    if not encoding:
        found = _DECLARED.match(data)
        encoding = found[1].decode().lower() if found else "utf-8"
        if encoding.replace("-", "").startswith(_WIDE_NAMES):
            # It could not be read up to here.
            notes[f"it is not {encoding.upper()}: taken for UTF-8"] = None
            encoding = "utf-8"
    return _decode(data, encoding, notes)


def _decode(data: bytes, encoding: str, notes: dict[str, None]) -> str:
    known = _codec(encoding)
    if known is None:
        notes[f"the encoding {encoding!r} is not read: taken for UTF-8"] = None
        known, encoding = "utf-8", "utf-8"
    try:
        return data.decode(known)
    except UnicodeError:
        notes[f"it is not {encoding.upper()}: read as windows-1252"] = None
        return data.decode(WINDOWS, errors="replace")


def _codec(encoding: str) -> str | None:
    """Find the codec of a declared encoding, if it is one of texts."""
    try:
        found = codecs.lookup(encoding)
        # Some codecs turn bytes to bytes: no text comes of them.
        sound = isinstance(found.decode(b"")[0], str) and found.name not in _HIDING
    except (LookupError, ValueError, UnicodeError):
        return None
    return found.name if sound else None


def _without_doctype(text: str) -> str:
    """Leave out a DOCTYPE that names a file, which is never fetched; refuse one that declares something."""
    start = found.end() if (found := _PROLOG.match(text)) else 0
    doctype = _DOCTYPE.match(text, start)
    if doctype is None:
        return text
    end = doctype.end()
    if text[end : end + 1] != ">":
        line = text.count("\n", 0, start) + 1
        raise EventError(
            f"not a usable feed: the DOCTYPE in line {line} can declare entities: send it without"
        )
    return _blank(text, start, end + 1)


def _blank(text: str, start: int, end: int) -> str:
    """Take a part out, but for its line ends."""
    return text[:start] + "\n" * text.count("\n", start, end) + text[end:]
