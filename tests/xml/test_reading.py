"""Documents to arrays: what is read, against the parser's own tree, and what is refused."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headgate import Event
from headgate.core.event import SECOND_MARK
from headgate.errors import EventError
from headgate.xml.events.document import Document, Limits
from headgate.xml.events.reading import document_of, parse, read_document
from headgate.xml.language.model import TEXT, StructuralId
from tests.seeds import seeds
from tests.timing import thread_time
from tests.xml.document_rows import of_tree, shown
from tests.xml.random_patterns import random_document

SIMPLE = '<a x="1">yes<b>no</b></a>'


def check(document: Document) -> None:
    """Check the invariants of the arrays."""
    size = len(document.labels)
    for column in document[1:]:
        assert isinstance(column, np.ndarray)
        assert column.flags.c_contiguous
        assert column.flags.writeable
    assert document.text.dtype == np.uint8
    assert len(set(document.names)) == len(document.names)
    firsts = [document.labels.tolist().index(number) for number in range(len(document.names))]
    assert firsts == sorted(firsts)
    for node in range(size):
        parent = int(document.parents[node])
        assert parent < node <= document.ends[node] < size
        assert document.levels[node] == (document.levels[parent] + 1 if node else 0)
        assert not node or document.ends[node] <= document.ends[parent]
        children = document.children(node)
        assert children == [child for child in range(size) if document.parents[child] == node]
        kinds = [document.label(child).startswith("@") for child in children]
        assert kinds == sorted(kinds, reverse=True), "attributes come first"
        texts = [document.label(child) == "text()" for child in children]
        assert not any(one and other for one, other in pairwise(texts))


def test_the_arrays_of_a_small_document() -> None:
    document = read_document(SIMPLE)
    assert document.names == ("a", "@x", "text()", "b")
    assert shown(document) == [
        ("a", -1, 4, 0, "yesno"),
        ("@x", 0, 1, 1, "1"),
        ("text()", 0, 2, 1, "yes"),
        ("b", 0, 4, 1, "no"),
        ("text()", 3, 4, 2, "no"),
    ]
    assert document.text.tobytes() == b"yesno1"
    assert [document.id(node) for node in (0, 3)] == [StructuralId(0, 4, 0), StructuralId(3, 3, 1)]
    check(document)


@pytest.mark.parametrize("seed", seeds(150))
def test_agrees_with_the_parser(seed: int) -> None:
    text = random_document(random.Random(seed))
    document = read_document(text)
    assert shown(document) == of_tree(parse(text.encode()))
    assert shown(document) == shown(read_document(text.encode()))
    check(document)


@pytest.mark.parametrize("seed", seeds(60))
def test_agrees_with_the_parser_on_changed_documents(seed: int) -> None:
    rng = random.Random(seed)
    # What a declaration says about the encoding is for others to test: the parser is told to ignore it.
    whole = re.sub(r"^<\?xml.*?\?>", "", random_document(rng)).encode()
    signs = [
        b"<",
        b">",
        b"&",
        b'"',
        b"'",
        b"/",
        b"=",
        b" ",
        b"\r",
        b"\r\n",
        b"\t",
        b"\n",
        b"]]>",
        b"<!--",
        b"-->",
        b"--",
    ]
    signs += [
        b"<![CDATA[",
        b"<?",
        b"?>",
        b"&lt;",
        b"&#10;",
        b"&#x41;",
        b"\xc3\xa9",
        b":",
        b"xmlns",
        b"<a/>",
        b"x='1'",
        b"\x01",
    ]
    read = 0
    for _ in range(150):
        changed = whole
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(changed) + 1)
            changed = changed[:place] + rng.choice(signs) + changed[place + rng.choice((0, 0, 1, 4)) :]
        try:
            expected = of_tree(parse(changed))
        except EventError:
            with pytest.raises(EventError):
                read_document(changed)
        else:
            assert shown(read_document(changed)) == expected, changed
            read += 1
    assert read > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>x<!-- y -->z<?go on?>w</a>", ["xzw"]),
        ("<a>x<![CDATA[<&]]>y</a>", ["x<&y"]),
        ("<a><![CDATA[]]></a>", []),
        ("<a><!-- b --></a>", []),
        ("<a> \n </a>", [" \n "]),
        ("<a>x\r\ny\rz&#13;</a>", ["x\ny\nz\r"]),
        ("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x1F388;&#xe9;&#x20AC;</a>", ["<>&\"'A🎈é€"]),
        ("<a>x<b/>y</a>", ["x", "y"]),
        ("<!-- a --><?b c?> <a>x</a> <!-- d -->\n", ["x"]),
        ("<a>1 > 0</a >", ["1 > 0"]),
    ],
)
def test_texts(text: str, expected: list[str]) -> None:
    document = read_document(text)
    assert [val for label, *_, val in shown(document) if label == "text()"] == expected
    assert document.val(0) == "".join(expected)


def test_attributes_are_normalised_as_xml_says() -> None:
    document = read_document('<a b = \'x\r\ny\tz&#10;&quot;"\' c=""/>')
    assert shown(document)[1:] == [("@b", 0, 1, 1, 'x y z\n""'), ("@c", 0, 2, 1, "")]


def test_namespaces_are_in_labels_and_are_no_nodes() -> None:
    text = (
        '<p:a xmlns:p="urn:p" xmlns:q="urn:p" xmlns="urn:d" p:x="1" y="2" xml:lang="en">'
        '<q:a/><b q:x="3"/></p:a>'
    )
    for inside in (text, text.replace("<q:a/>", '<q:a xmlns:r="urn:r"/>')):
        document = read_document(inside)
        lang = "@{http://www.w3.org/XML/1998/namespace}lang"
        assert document.names == ("{urn:p}a", "@{urn:p}x", "@y", lang, "{urn:d}b")
        assert document.labels.tolist() == [0, 1, 2, 3, 0, 4, 1]


def test_a_default_can_be_taken_back() -> None:
    document = read_document('<a xmlns="urn:a"><b xmlns=""><c/></b><d/></a>')
    assert document.names == ("{urn:a}a", "b", "c", "{urn:a}d")


@pytest.mark.parametrize(
    "data",
    [
        SIMPLE,
        "\ufeff" + SIMPLE,
        '<?xml version="1.0" encoding="ISO-8859-1"?>' + SIMPLE,
        SIMPLE.encode("utf-8-sig"),
        SIMPLE.encode("utf-16"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + SIMPLE).encode("utf-16"),
        b"\xfe\xff" + ('<?xml version="1.0"?>' + SIMPLE).encode("utf-16-be"),
        ("<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n" + SIMPLE).encode(),
        ('<?xml version="1.0" encoding="us-ascii"?>' + SIMPLE).encode(),
    ],
)
def test_encodings(data: str | bytes) -> None:
    assert shown(read_document(data)) == shown(read_document(SIMPLE))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "not valid XML: Document is empty"),
        ("\ufeff\ufeff" + SIMPLE, f"not valid XML: {SECOND_MARK}"),
        (2 * b"\xef\xbb\xbf" + SIMPLE.encode(), f"not valid XML: {SECOND_MARK}"),
        (b"\xff\xfe" + ("\ufeff" + SIMPLE).encode("utf-16-le"), f"not valid XML: {SECOND_MARK}"),
        ("x", "not valid XML: Start tag expected"),
        ("<a>", "not valid XML: Premature end of data in tag a line 1, line 1, column 4"),
        ("<a></b>", "not valid XML: Opening and ending tag mismatch"),
        ("<a/><b/>", "not valid XML: Extra content"),
        ("<p:a/>", "not valid XML: Namespace prefix p on a is not defined"),
        ("<a x='1' x='2'/>", "not valid XML: Attribute x redefined"),
        ("<a>\n&nbsp;</a>", "not usable XML: &nbsp; in line 2 is not a reference"),
        ("<a x='&b;'/>", "not usable XML: &b; in line 1 is not a reference"),
        ("<a>&</a>", "is not a reference: send the character, or &amp; for &"),
        ("<a>&#0;</a>", "not valid XML"),
        ("<a>\ud800</a>", "character 4 is half of a surrogate pair"),
        ("<!DOCTYPE a><a/>", "a DOCTYPE can declare entities: send the document without it"),
        (b"<a>\xff</a>", "not valid XML: Invalid bytes"),
        ('<?xml version="1.0" encoding="ascii"?><a>é</a>'.encode(), "byte 42 is not ASCII"),
        (b'<?xml version="1.0" encoding="latin-1"?><a/>', "the encoding 'latin-1' is not read: send UTF-8"),
        (b"\xff\xfe<", "not valid XML: byte 3 is not UTF-16"),
        ('<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="a"/>', "an element of XInclude"),
        ('<a><include xmlns="http://www.w3.org/2001/XInclude"/></a>', "an element of XInclude"),
    ],
)
def test_refusals_are_one_line(data: str | bytes, message: str) -> None:
    with pytest.raises(EventError) as caught:
        read_document(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("limits", "enough", "message"),
    [
        (Limits(size=len(SIMPLE) - 1), Limits(size=len(SIMPLE)), "has 25 bytes: 24 are allowed"),
        (Limits(depth=1), Limits(depth=2), "the elements in line 1 nest too deep: 1 levels are allowed"),
        (Limits(attributes=0), Limits(attributes=1), "has too many attributes: 0 are allowed"),
        (Limits(children=1), Limits(children=2), "has too many children by line 1: 1 are allowed"),
        (Limits(nodes=4), Limits(nodes=5), "has too many nodes by line 1: 4 are allowed"),
        (Limits(names=2), Limits(names=3), "has too many different names by line 1: 2 are allowed"),
        (Limits(text=5), Limits(text=6), "has too much text by line 1: 5 bytes are allowed"),
    ],
)
def test_limits(limits: Limits, enough: Limits, message: str) -> None:
    assert shown(read_document(SIMPLE, enough)) == shown(read_document(SIMPLE))
    with pytest.raises(EventError, match=message):
        read_document(SIMPLE, limits)


def test_the_parser_takes_as_deep_as_the_deepest_limit() -> None:
    text = "<a>" * 255 + "</a>" * 255
    assert read_document(text, Limits(depth=255)).levels.max() == 254
    with pytest.raises(ValueError, match="give one from 1 to 255"):
        Limits(depth=256)


def test_the_document_of_an_event_is_read_once() -> None:
    event = Event("e", SIMPLE, content_type="text/xml")
    assert document_of(event) is document_of(event)
    document = read_document(SIMPLE)
    assert document_of(Event("e", document, content_type="xml")) is document
    with pytest.raises(EventError, match="event 'e' is application/json and these filters look at XML"):
        document_of(Event("e", {}))


def test_that_of_texts_is_no_name_of_theirs() -> None:
    for text in ("<a><b/><c/></a>", "<a>x<b/><c/></a>", "<a><b/><c/>x</a>", "<a><b/>x<c d='1'/></a>"):
        names = len(set(read_document(text).names) - {TEXT})
        assert len(read_document(text, Limits(names=names)).names) >= names
        with pytest.raises(EventError, match=f"too many different names by line 1: {names - 1} are allowed"):
            read_document(text, Limits(names=names - 1))


def test_what_is_neither_text_nor_bytes_is_refused() -> None:
    data: list[Any] = [memoryview(b"<a/>"), bytearray(b"<a/>"), ("<a/>",), None]
    for each in data:
        with pytest.raises(EventError, match=f"the document is {type(each).__name__}: send text or bytes"):
            read_document(each)


def test_two_prefixes_of_one_namespace_are_read_soon() -> None:
    names = "".join(f"<p:n{number}/><q:n{number}/>" for number in range(4_990))
    with thread_time() as spent:
        document = read_document(f"<a xmlns:p='urn:x' xmlns:q='urn:x'>{names}</a>")
    assert spent.seconds < 0.5
    assert len(document.names) == 4_991
    assert document.label(1) == document.label(2) == "{urn:x}n0"
