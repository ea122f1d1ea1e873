"""Documents of all formats to graphs: the same triples give the same graph."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate import Event
from headgate.core.event import JSON_LD, N_TRIPLES, RDF_XML, RSS, SECOND_MARK, TURTLE
from headgate.errors import EventError
from headgate.rdf.events.reading import Reader, graph_of, make_graph, read_graph, read_graphs
from headgate.rdf.events.screening import Limits, format_of
from headgate.rdf.events.triples import Settings, parse, read_lines, write_lines
from headgate.rdf.language.model import RDF, TYPE, XSD, Graph, iri, literal, parts
from tests.rdf.random_patterns import random_graph
from tests.seeds import examples, seeds

HERE = Reader(isolated=False)
SETTINGS = Settings(None, 100_000, 1 << 20, 32 << 20)
EX = "http://example.org/"
INTEGER = f"{XSD}integer"


def of(text: str, kind: str = "turtle") -> list[tuple[str, str, str]]:
    return HERE.read(text, kind).statements()


def shape(graph: Graph) -> list[tuple[str, str, str]]:
    return sorted(graph.statements())


# All formats

SAME = {
    "turtle": """@prefix e: <http://example.org/> .
        e:a a e:Book ; e:title "Zoë's \\"book\\"\\n" , "Livre"@fr-CA ; e:year 2001 ; e:by _:x .
        _:x e:name "A" .""",
    "nt": """
        <http://example.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Book> .
        # a comment
        <http://example.org/a> <http://example.org/title> "Zo\\u00EB's \\"book\\"\\n" .
        <http://example.org/a> <http://example.org/title> "Livre"@fr-CA.
        <http://example.org/a> <http://example.org/year> "2001"^^<http://www.w3.org/2001/XMLSchema#integer> .
        <http://example.org/a> <http://example.org/by> _:someone .
        _:someone <http://example.org/name> "A"^^<http://www.w3.org/2001/XMLSchema#string> .
        """,
    "rdfxml": """<?xml version="1.0"?>
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/">
        <e:Book rdf:about="http://example.org/a"><e:title>Zoë's "book"&#10;</e:title>
        <e:title xml:lang="fr-CA">Livre</e:title>
        <e:year rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">2001</e:year>
        <e:by><rdf:Description><e:name>A</e:name></rdf:Description></e:by></e:Book></rdf:RDF>""",
    "jsonld": json.dumps(
        {
            "@context": {"@vocab": EX},
            "@id": f"{EX}a",
            "@type": "Book",
            "title": ['Zoë\'s "book"\n', {"@value": "Livre", "@language": "fr-CA"}],
            "year": 2001,
            "by": {"name": "A"},
        }
    ),
}
STATEMENTS = sorted(
    [
        ("<http://example.org/a>", TYPE, "<http://example.org/Book>"),
        ("<http://example.org/a>", "<http://example.org/by>", "_:b0"),
        ("<http://example.org/a>", "<http://example.org/title>", '"Livre"@fr-ca'),
        ("<http://example.org/a>", "<http://example.org/title>", '"Zoë\'s \\"book\\"\\n"'),
        ("<http://example.org/a>", "<http://example.org/year>", f'"2001"^^<{INTEGER}>'),
        ("_:b0", "<http://example.org/name>", '"A"'),
    ]
)


@pytest.mark.parametrize("kind", SAME)
@pytest.mark.parametrize("isolated", [None, False, True])
def test_all_formats_give_the_same_graph(kind: str, isolated: bool | None) -> None:
    reader = Reader(isolated=isolated) if isolated else HERE if isolated is False else Reader()
    for data in (
        SAME[kind],
        SAME[kind].encode(),
        "\ufeff" + SAME[kind],
        b"\xef\xbb\xbf" + SAME[kind].encode(),
    ):
        graph = reader.read(data, kind)
        assert shape(graph) == STATEMENTS
        assert graph.triples.dtype == np.int32
        assert graph.triples.flags.writeable
    reader.close()


@pytest.mark.parametrize("kind", SAME)
def test_a_second_byte_order_mark_is_refused(kind: str) -> None:
    declared = ["\ufeff<?xml version='1.0'?>\ufeff" + SAME[kind]] if kind == "rdfxml" else []
    for text in ("\ufeff\ufeff" + SAME[kind], *declared):
        for data in (text, text.encode()):
            with pytest.raises(EventError, match=f"not valid .*: {SECOND_MARK}"):
                HERE.read(data, kind)


@pytest.mark.parametrize("kind", SAME)
def test_media_types_are_as_good_as_short_names(kind: str) -> None:
    assert shape(read_graph(SAME[kind], f"{format_of(kind).upper()}; charset=UTF-8")) == STATEMENTS


def test_rss_is_rdf_xml() -> None:
    assert shape(HERE.read(SAME["rdfxml"], RSS)) == STATEMENTS


def test_an_empty_document_is_an_empty_graph() -> None:
    for kind, data in (("turtle", ""), ("nt", b""), ("jsonld", "[]"), ("turtle", "# nothing")):
        graph = HERE.read(data, kind)
        assert graph.statements() == []
        assert graph.triples.shape == (0, 3)
        assert graph.text == b""


def test_many_documents_keep_their_places() -> None:
    documents: list[tuple[str | bytes, str]] = [
        (f'<urn:{n}> <urn:p> "{n}" .', "nt" if n % 3 else "turtle") for n in range(50)
    ]
    documents[7] = ("<urn:", "turtle")
    documents[8] = ("x", "text/html")
    documents[9] = ("<x/>", "application/xml")
    documents[20] = ("<urn:", "nt")
    found = read_graphs(documents)
    refused = {n for n, each in enumerate(found) if isinstance(each, EventError)}
    assert refused == {7, 8, 9, 20}
    for n, each in enumerate(found):
        if isinstance(each, Graph):
            assert each.statements() == [(f"<urn:{n}>", "<urn:p>", f'"{n}"')]


# Events


def test_an_event_is_read_once() -> None:
    event = Event("e1", SAME["turtle"], content_type="turtle")
    assert graph_of(event) is graph_of(event)
    assert shape(graph_of(event)) == STATEMENTS
    made = make_graph(STATEMENTS)
    assert graph_of(Event("e1", made, content_type="nt")) is made
    with pytest.raises(EventError, match=r"event 'e1' is application/json and these filters look at RDF"):
        graph_of(Event("e1", {}))


def test_a_reader_of_ones_own() -> None:
    event = Event("e1", "<a> <b> <c> .", content_type="turtle")
    assert graph_of(event, Reader(isolated=False, base=EX)).terms() == [iri(EX + name) for name in "abc"]


# Terms


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("".join(map(chr, range(0x3000))))
@example("\ufffe\uffff\U0010ffff")
def test_literals_are_written_as_pyoxigraph_writes_them(text: str) -> None:
    assert literal(text) == str(ox.Literal(text))
    assert literal(text, language="en-gb") == str(ox.Literal(text, language="en-GB"))
    assert literal(text, INTEGER) == str(ox.Literal(text, datatype=ox.NamedNode(INTEGER)))
    assert parts(literal(text)).lexical == text


def test_every_character_survives_every_format() -> None:
    text = "".join(chr(code) for code in (*range(1, 0x300), 0x2028, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0x1F388))
    wanted = [("<urn:a>", "<urn:p>", literal(text))]
    escaped = literal(text)
    assert of(f"<urn:a> <urn:p> {escaped} .\n", "nt") == wanted
    assert of(f"<urn:a> <urn:p> {escaped} .", "turtle") == wanted
    assert of(json.dumps({"@id": "urn:a", "urn:p": text}), "jsonld") == wanted


def test_brackets_in_strings_are_not_nesting() -> None:
    brackets = "[({" * 500
    text = f"""<urn:a> <urn:p> '{brackets}' , "{brackets}" , '''{brackets}' '' ''' , \"""{brackets}" "" \""" ;
        # {brackets} "
        <urn:q> <urn:{"(" * 200}> , "\\"{brackets}" . <urn:b> <urn:p> <urn:c> ."""
    assert len(of(text)) == 6
    assert len(of(json.dumps({"@id": "urn:a", "urn:p": [brackets, '"' + brackets, "\\"]}), "jsonld")) == 3
    xml = "&lt;a>" * 500 + "<![CDATA[" + "<a>" * 500 + "]]><!-- " + "<a>" * 500 + "<!DOCTYPE x> -->"
    assert len(of(rdf_xml(f"<e:a><e:p>{xml}</e:p></e:a>"), "rdfxml")) == 2


def rdf_xml(inside: str) -> str:
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{EX}">{inside}</rdf:RDF>'


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (" <![CDATA[<x>]]> ", " <x> "),
        ("a<![CDATA[&amp;]]>b<![CDATA[]]><![CDATA[<!-- c -->]]>", "a&amp;b<!-- c -->"),
        ("a<!-- <![CDATA[x]]> -->b<?pi <!-- ?>c", "abc"),
        ("a\r\nb\rc&#13;", "a\nb\nc\r"),
        ("&lt;![CDATA[x]]&gt;", "<![CDATA[x]]>"),
    ],
)
def test_text_of_xml(written: str, meant: str) -> None:
    assert of(rdf_xml(f"<e:a><e:p>{written}</e:p></e:a>"), "rdfxml")[1][2] == literal(meant)


def test_equal_triples_are_one() -> None:
    assert len(of("<urn:a> <urn:p> 1, 1, '1' . <urn:a> <urn:p> 1 .")) == 2
    assert of("<urn:a> <urn:p> <urn:a> .\n" * 3, "nt") == [("<urn:a>", "<urn:p>", "<urn:a>")]


def test_blank_nodes_are_local_and_named_in_order() -> None:
    assert of("_:z <urn:p> [ <urn:q> _:a ] .") == [("_:b0", "<urn:q>", "_:b1"), ("_:b2", "<urn:p>", "_:b0")]
    assert of("_:z <urn:p> _:b0 .\n_:b0 <urn:p> _:z .\n", "nt") == [
        ("_:b0", "<urn:p>", "_:b1"),
        ("_:b1", "<urn:p>", "_:b0"),
    ]


def test_a_base_is_needed_for_relative_iris() -> None:
    documents = {
        "turtle": "<a> <urn:p> <#b> .",
        "rdfxml": rdf_xml('<rdf:Description rdf:about="a"><e:p rdf:resource="#b"/></rdf:Description>'),
        "jsonld": '{"@id": "a", "urn:p": {"@id": "#b"}}',
    }
    reader = Reader(isolated=False, base="http://example.org/x/y")
    for kind, text in documents.items():
        subject, _, value = reader.read(text, kind).statements()[0]
        assert (subject, value) == ("<http://example.org/x/a>", "<http://example.org/x/y#b>")
        with pytest.raises(EventError, match=r"scheme|the IRI 'a' is relative|IRI '#b' is relative"):
            HERE.read(text, kind)
    assert of("@base <http://example.org/> . <a> <b> <c> .")[0][0] == "<http://example.org/a>"
    with pytest.raises(EventError, match=r"the base 'x' is not an IRI"):
        Reader(base="x")


def test_encodings_of_xml() -> None:
    text = rdf_xml("<e:a><e:p>Zoë</e:p></e:a>")
    wanted = HERE.read(text, RDF_XML).statements()
    for declared, encoding in (("ISO-8859-1", "latin-1"), ("utf-8", "utf-8"), ("UTF-8", "utf-8")):
        document = f'<?xml version="1.0" encoding="{declared}"?>{text}'
        assert HERE.read(document.encode(encoding), RDF_XML).statements() == wanted
        assert HERE.read(document, RDF_XML).statements() == wanted, "text is decoded already"


REFUSED = [
    ("turtle", "<urn:a> <urn:p> <<( <urn:a> <urn:p> 1 )>> .", "inside << >> in line 1 is RDF 1.2"),
    ("turtle", "# <<\n<urn:a>\n<urn:p> << <urn:a> <urn:p> 1 >> .", "inside << >> in line 3 is RDF 1.2"),
    ("turtle", "<urn:a> <urn:p> 1 {| <urn:q> 2 |} .", "a triple that is a term is RDF 1.2"),
    ("turtle", '<urn:a> <urn:p> "x"@en--ltr .', "a language with a direction is RDF 1.2"),
    ("nt", "<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> .", "is RDF 1.2"),
    ("nt", "<urn:a> <urn:p> 'x' .", "not valid N-Triples: at line 1"),
    ("nt", b'<urn:a> <urn:p> "\xff" .\n', "not valid N-Triples: byte 18 is not UTF-8"),
    ("nt", '<urn:a> <urn:p> "\ud800" .\n', "character 18 is half of a surrogate pair"),
    ("nt", '<urn:a> <urn:p> "\\uD800" .\n', "not a valid unicode character"),
    ("nt", '<urn:a> <urn:p> "a\0b" .\n', "byte 19 is NUL"),
    ("nt", "<a> <urn:p> <urn:b> .\n", "No scheme found"),
    ("nt", "<urn:a> <urn:p> <http://a:b/> .\n", "Invalid character 'b'"),
    ("nt", f'<urn:a> <urn:p> "x"^^<{RDF}langString> .\n', "must not be rdf:langString"),
    ("turtle", "<urn:a> <urn:p> " + "x" * 1000 + " .", "…"),
    ("jsonld", '{"@id": "urn:g", "@graph": [{"@id": "urn:a", "urn:p": 1}]}', "it names a graph"),
    (
        "jsonld",
        '{"@context": "https://schema.org", "name": 1}',
        "the context 'https://schema.org' would have",
    ),
    ("jsonld", '{"a": {"@context": [{}, "http://example.org/c"]}}', "the context 'http://example.org/c'"),
    ("jsonld", '{"@context": {"@import": "http://example.org/c"}}', "the context 'http://example.org/c'"),
    ("jsonld", '{"\\u0040context": "http://example.org/c"}', "the context 'http://example.org/c'"),
    ("jsonld", '{"@id": "urn:a", "@type": "Book"}', "the IRI 'Book' is relative"),
    ("jsonld", "{", "not valid JSON-LD"),
    ("rdfxml", rdf_xml("<e:a><e:p>&nbsp;</e:p></e:a>"), "not valid RDF/XML: undefined entity: line 1"),
    ("rdfxml", rdf_xml("<e:a><f:p/></e:a>"), "not valid RDF/XML: Unknown prefix f:"),
    ("rdfxml", "<a/>", "not valid RDF/XML: XML namespaces are required"),
    ("rss", "<a", "not valid RSS 1.0: unclosed token"),
]


@pytest.mark.parametrize(("kind", "data", "message"), REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("isolated", [False, None])
def test_what_is_refused(kind: str, data: str | bytes, message: str, isolated: bool | None) -> None:
    with pytest.raises(EventError, match=re.escape(message)) as caught:
        (read_graph if isolated is None else HERE.read)(data, kind)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_an_unknown_content_type() -> None:
    with pytest.raises(
        EventError, match=r"content type 'text/html' is not RDF: send one of text/turtle \(turtle"
    ):
        read_graph("", "text/html")
    with pytest.raises(EventError, match=r"'turtle; charset=latin-1' is not RDF"):
        read_graph("", "turtle; charset=latin-1")


# N-Triples without a parser

_NAMES = st.from_regex(r"[a-z0-9%é/?#:@.\[\]\\ -]{0,6}", fullmatch=True)
_TERMS = st.one_of(
    st.builds("<urn:{}>".format, _NAMES),
    st.builds("<http://{}>".format, _NAMES),
    st.builds("<{}>".format, _NAMES),
    st.builds("_:{}".format, _NAMES),
    st.builds('"{}"'.format, st.text(max_size=4)),
    st.builds(literal, st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
    st.builds('"{}"@{}'.format, _NAMES, st.from_regex(r"[a-zA-Z0-9-]{0,5}", fullmatch=True)),
    st.builds('"{}"^^<{}>'.format, _NAMES, st.sampled_from([f"{RDF}a", f"{XSD}string", f"{XSD}a", "urn:a"])),
    st.sampled_from(["", "'x'", "<<(", "#", '"\\u0041"', '"\\n"', "<urn:\\u0041>", "a:b", "1", "_:a.b"]),
)
_LINES = st.builds(
    "{}{}{}{}{}{}".format,
    _TERMS,
    st.sampled_from([" "] * 8 + ["", "  ", "\t", "\n"]),
    _TERMS,
    st.sampled_from([" "] * 8 + [""]),
    _TERMS,
    st.sampled_from([" .\n"] * 8 + [".\n", " . \n", " .\r\n", " .", "\n", " .\n\n", " . # x\n"]),
)


@examples(800)
@given(st.lists(_LINES, max_size=3).map("".join))
@example("<urn:a>\n<urn:b> <urn:p> <urn:c> .\n")
@example("<urn:a> <urn:p> <urn:b> <urn:c> .\n")
@example('"x" <urn:p> <urn:b> .\n')
@example("<urn:a> _:p <urn:b> .\n")
@example('<urn:a> <urn:p> "x .\n" .\n')
@example('<urn:a> <urn:p> "x . <urn:a> <urn:p> " .\n')
@example("<http://a//b> <http:///> <http://:80?a?#b?> .\n")
@example("<urn:a> <urn:p> <urn:a#b#c> .\n")
@example("<a:> <a://> <a:/b//c:@!$&'()*+,;=> .\n")
def test_plain_lines_are_read_as_pyoxigraph_reads_them(text: str) -> None:
    try:
        data = text.encode()
        wanted: object = parse(data, N_TRIPLES, "N-Triples", SETTINGS)
    except (EventError, UnicodeEncodeError) as error:
        wanted = type(error)
    found = read_lines(text, SETTINGS)
    if found is not None:
        assert found == wanted


@pytest.mark.parametrize("seed", seeds(100))
def test_what_is_written_is_read_back(seed: int) -> None:
    graph = random_graph(random.Random(seed))
    text = write_lines(graph)
    quick = read_lines(text, SETTINGS)
    slow = parse(text.encode(), N_TRIPLES, "N-Triples", SETTINGS)
    assert quick is None or quick == slow
    wanted = [" ".join(triple) for triple in of(text, "nt")]
    blanks = {label: f"_:b{n}" for n, label in enumerate(dict.fromkeys(re.findall(r"_:\w+", text)))}
    assert wanted == [" ".join(blanks.get(term, term) for term in triple) for triple in graph.statements()]


def test_most_lines_are_plain() -> None:
    lines = [
        f"<http://example.org/a> {TYPE} <https://schema.org/Book> .",
        '<urn:isbn:1> <http://purl.org/dc/elements/1.1/title> "Zoë \\"says\\" \\\\ hi.\\n" .',
        '<http://example.org:80/a%20b?c=d#e> <urn:p> "2001"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        '_:b1 <urn:p> "chat"@fr .',
        '<mailto:a@example.org> <urn:p> "colour"@en-gb .',
    ]
    for line in lines:
        assert read_lines(line + "\n", SETTINGS) is not None, line


# Limits


def test_limits() -> None:
    small = Reader(isolated=False, limits=Limits(size=200, depth=3, triples=2, term=30, attributes=3))
    for kind, data, message in [
        ("turtle", " " * 201, "the document has 201 bytes: 200 are allowed"),
        ("nt", "# é" * 51, "the document has 204 bytes: 200 are allowed"),
        ("nt", "\n" * 201, "the document has 201 bytes"),
        ("turtle", "<urn:a> <urn:p> 1, 2, 3 .", "it has more than 2 triples"),
        ("nt", "<urn:a> <urn:p> <urn:b> .\n" * 3, "it has more than 2 triples"),
        ("nt", "<urn:a> <urn:p> <urn:b>.\n" * 3, "it has more than 2 triples"),
        ("nt", f'<urn:a> <urn:p> "{"x" * 30}" .\n', "a term has 32 characters: 30 are allowed"),
        ("turtle", f'<urn:a> <urn:p> "{"x" * 30}" .', "a term has 32 characters: 30 are allowed"),
        ("turtle", "<urn:a> <urn:p> [[[[]]]] .", "it nests 4 deep: 3 are allowed"),
        ("jsonld", "[[[[]]]]", "it nests 4 deep: 3 are allowed"),
        ("rdfxml", "<a><a><a><a/></a></a></a>", "elements nest more than 3 deep"),
        ("rdfxml", "<a b='' c='' d='' e=''/>", "an element has 4 attributes: 3 are allowed"),
    ]:
        with pytest.raises(EventError, match=re.escape(message)):
            small.read(data, kind)
    assert len(small.read("<urn:a> <urn:p> [ <urn:q> [] ] .", TURTLE).triples) == 2
    assert small.read("[[[]]]", JSON_LD).statements() == []


def test_all_terms_together() -> None:
    few = Reader(isolated=False, limits=Limits(terms=50))
    few.read('<urn:a> <urn:p> "x", "y" .', TURTLE)
    with pytest.raises(EventError, match=r"its terms have 54 characters: 50 are allowed"):
        few.read(f'<urn:a> <urn:p> "{"x" * 38}" .', TURTLE)
