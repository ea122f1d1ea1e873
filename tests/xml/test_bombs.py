"""Documents that are made to harm: refused soon, each with a reason, and the process lives."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from headgate.errors import EventError
from headgate.xml.events.reading import read_document
from tests.timing import thread_time

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 0.5
DEEP = 100_000
MANY = 1_000_000
SIZE = 1 << 20


def filled(piece: bytes, before: bytes = b"") -> bytes:
    """Repeat a piece up to a size at which anything but linear time would show."""
    return before + piece * ((SIZE - len(before)) // len(piece))


def entity_bomb(levels: int) -> bytes:
    """Make entities of entities, ten to the power of the levels in the end."""
    entities = [b'<!ENTITY a0 "aaaaaaaaaa">']
    entities += [b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, levels)]
    return b"<!DOCTYPE a [" + b"".join(entities) + b"]><a>&a%d;</a>" % (levels - 1)


def with_declaration(encoding: str, text: str = "<a/>") -> bytes:
    """Declare an encoding."""
    return f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode()


DOCTYPE = b'<!DOCTYPE a SYSTEM "file:///etc/passwd">'
EXTERNAL = b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
PARAMETER = b'<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1:9/"> %p;]>'
BOMBS: dict[str, tuple[bytes, str]] = {
    "entity bomb": (entity_bomb(10), "a DOCTYPE can declare entities"),
    "quadratic bomb": (
        b'<!DOCTYPE a [<!ENTITY e "' + b"x" * DEEP + b'">]><a>' + b"&e;" * DEEP + b"</a>",
        "a DOCTYPE can declare entities",
    ),
    "doctype": (DOCTYPE + b"<a/>", "a DOCTYPE"),
    "external entity": (EXTERNAL + b"<a>&e;</a>", "a DOCTYPE"),
    "parameter entity": (PARAMETER + b"<a/>", "a DOCTYPE"),
    "doctype after a comment": (b"<!-- > --> " + DOCTYPE + b"<a/>", "a DOCTYPE"),
    "doctype in UTF-16": ((EXTERNAL + b"<a>&e;</a>").decode().encode("utf-16"), "a DOCTYPE"),
    "doctype in lower case": (b"<!doctype a><a/>", "a DOCTYPE"),
    "entity without doctype": (b"<a>&e;</a>", "&e; in line 1 is not a reference"),
    "XInclude": (
        b'<a><i:include xmlns:i="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/></a>',
        "XInclude",
    ),
    "UTF-7": (with_declaration("UTF-7", "+ADw-a/+AD4-"), "the encoding 'utf-7' is not read"),
    "EBCDIC": (with_declaration("cp037"), "the encoding 'cp037' is not read"),
    "EBCDIC bytes": ("<?xml version='1.0' encoding='cp037'?><a/>".encode("cp037"), "not valid XML"),
    "UTF-16 that is not": (with_declaration("UTF-16"), "not valid XML"),
    "UTF-16 without a mark": ("<a/>".encode("utf-16-le"), "byte 2 is NUL"),
    "doctype in another encoding": (
        b"<?xml version='1.0' encoding='iso-8859-1'?>" + DOCTYPE + b"<a/>",
        "a DOCTYPE",
    ),
    "entities in another encoding": (
        b"<?xml version='1.0' encoding='iso-8859-1'?><a>&e;</a>",
        "not valid XML: Entity 'e' not defined",
    ),
    "depth in another encoding": (
        b"<?xml version='1.0' encoding='iso-8859-1'?>" + b"<a>" * 200 + b"</a>" * 200,
        "nest too deep",
    ),
    "invalid UTF-8": (b"<a>\xc3\x28</a>", "not valid XML"),
    "surrogates in UTF-8": (b"<a>\xed\xa0\x80</a>", "not valid XML"),
    "overlong UTF-8": (b"<a>\xc0\xbcb></a>", "not valid XML"),
    "NUL": (b"<a>\0</a>", "byte 4 is NUL"),
    "NUL at the end": (b"<a/>" + b"\0" * DEEP, "byte 5 is NUL"),
    "attributes": (b"<a " + b"".join(b'p%d="x" ' % n for n in range(200_000)) + b"/>", "too many attributes"),
    "declarations": (
        b"<a " + b"".join(b'xmlns:p%d="u:x" ' % n for n in range(100_000)) + b"/>",
        "too many attributes",
    ),
    "children": (b"<a>" + b"<b/>" * MANY + b"</a>", "too many children by line 1: 100,000 are allowed"),
    "texts and children": (b"<a>" + b"x<b/>" * MANY + b"</a>", "too many children"),
    "elements": (b"<a>" + (b"<b>" + b"<c/>" * 90_000 + b"</b>") * 20 + b"</a>", "too many nodes"),
    "names": (b"<a>" + b"".join(b"<b%d/>" % n for n in range(90_000)) + b"</a>", "different names"),
    "depth": (b"<a>" * DEEP + b"</a>" * DEEP, "nest too deep: 128 levels are allowed"),
    "depth without an end": (b"<a>" * MANY, "nest too deep"),
    "size": (b"<a>" + b"x" * (9 << 20) + b"</a>", "the document has 9,437,191 bytes: 8,388,608 are allowed"),
    "size in UTF-16": (("<a>" + "€" * (3 << 20) + "</a>").encode("utf-16"), "bytes: 8,388,608 are allowed"),
    "text": (b"<a>" + b"x" * (5 << 20) + b"</a>", "too much text"),
    "attribute": (b"<a b='" + b"x" * (5 << 20) + b"'/>", "too much text"),
    "section": (b"<a><![CDATA[" + b"x" * (5 << 20) + b"]]></a>", "too much text"),
    "open tags": (filled(b"<"), "not valid XML"),
    "open comments": (filled(b"<!--", b"<a>"), "not valid XML"),
    "open sections": (filled(b"]]", b"<a><![CDATA["), "not valid XML"),
    "open instructions": (filled(b"<?", b"<a>"), "not valid XML"),
    "open attribute": (filled(b" b=", b"<a "), "not valid XML"),
    "open value": (filled(b"<", b"<a b='"), "not valid XML"),
    "ampersands": (filled(b"&", b"<a>"), "is not a reference"),
    "long reference": (filled(b"0", b"<a>&#"), "is not a reference"),
    "large reference": (b"<a>&#x" + b"f" * 30 + b";</a>", "is not a reference"),
    "large character": (b"<a>&#x110000;</a>", "is not a reference"),
    "long name": (filled(b"a", b"<"), "not valid XML"),
    "closing tags": (filled(b"</a>", b"<a>"), "not valid XML"),
    "blanks": (filled(b" "), "not valid XML"),
}


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """Compile what is compiled, which is not part of what is timed; drop the bombs in the end."""
    read_document("<a/>")
    yield
    BOMBS.clear()


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_soon(name: str) -> None:
    data, message = BOMBS[name]
    with thread_time() as spent, pytest.raises(EventError) as caught:
        read_document(data)
    assert spent.seconds < SECONDS
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert len(read_document("<a/>").labels) == 1


def test_names_that_collide_are_read_soon() -> None:
    # As many names as are allowed, all alike but for a few letters, each many times.
    names = [f"n{number:04}" for number in range(9_000)]
    data = f"<a>{''.join(f'<{name}/>' for name in names * 8)}</a>"
    with thread_time() as spent:
        assert len(read_document(data).names) == 9_001
    assert spent.seconds < SECONDS


def test_names_chosen_for_their_hashes_are_refused_soon() -> None:
    mask, found = (1 << 64) - 1, []
    for number in range(800_000):
        hashed, name = 14695981039346656037, f"n{number}"
        for byte in name.encode():
            hashed = (hashed ^ byte) * 1099511628211 & mask
        if (hashed ^ hashed >> 32) & 2047 == 0:  # the slots of so many names
            found.append(name)
        if len(found) == 280:
            break
    data = f"<a>{''.join(f'<{name}/>' for name in found)}</a>"
    assert len(found) == 280
    with pytest.raises(EventError, match="too many different names"):
        read_document(data)
    few = "".join(f"<{name}/>" for name in found[:100])
    assert len(read_document(f"<a>{few}</a>").names) == 101


def test_truncated_and_random_documents() -> None:
    rng = random.Random(7)
    whole = b'<?xml version="1.0"?><a x="1" n:y="&lt;" xmlns:n="u:n">'
    whole += b"t<!-- c --><b><![CDATA[d]]>&#65;</b><?p?></a>"
    documents = [whole[:end] for end in range(len(whole))]
    documents += [rng.randbytes(rng.randrange(200)) for _ in range(300)]
    documents += [b"<a" + rng.randbytes(rng.randrange(60)) for _ in range(300)]
    for data in documents:
        with pytest.raises(EventError) as caught:
            read_document(data)
        assert "\n" not in str(caught.value)
    assert len(read_document(whole).labels) == 6
