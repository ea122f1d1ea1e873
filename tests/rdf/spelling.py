"""Patterns in other spellings than those that printing chooses, and texts that are nearly filters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.rdf.language.model import BELOW, BELOW_PROPERTY, ISA, PLAIN, RDF, RDFS, SELECT, TYPE, XSD, parts
from headgate.rdf.language.printing import print_expression, print_pattern, print_term
from headgate.rdf.language.words import cut
from tests.rdf.random_patterns import EX, random_pattern

if TYPE_CHECKING:
    import random

    from headgate.rdf.language.model import Edge, Pattern, Term

PROLOGUE = f"PREFIX ex: <{EX}>\nbase <{EX}deep/er/>\nprefix : <../../p> # comment\nPREFIX x.y-z: <{XSD}>\n"
PREDECLARED = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD}
_GAPS = (" ", "  ", "\n", "\t\r\n", " # comment } ' \n", "\n#\n#\n ")
_PATHS = {
    ISA: ("a/rdfs:subClassOf*", f"rdf:type / <{RDFS}subClassOf>*", "(a/(rdfs:subClassOf)*)"),
    BELOW: ("rdfs:subClassOf*", f"<{RDFS}subClassOf> *"),
    BELOW_PROPERTY: ("rdfs:subPropertyOf*", "(rdfs:subPropertyOf*)"),
}
_SOUP = [
    "#",
    '"""',
    *cut(
        """ASK SELECT DISTINCT WHERE FILTER IN NOT isIRI lang str STRSTARTS true a { } ( ) [ ] . , ; ^^ && ||
        ! = != < <= > >= * / | ^ + - ? ?x ?y $x _:b _:b0 1 -2 +3 2.5 1e3 'x' "y" '''z''' @en ex:p ex: : :q
        <y> <http://e/x> rdfs:subClassOf PREFIX BASE OPTIONAL UNION regex ~ \\ \x00 é 日 & ' """
    ),
]
_PIECES = {
    "name": (
        *("ex:", "a", "b", ".", "-", "_", "0", "%20", "%2", "\\,", "\\.", "\\", "é", "·", "日", "'", ":"),
        "\u0300",
    ),
    "string": (
        *('"', "'", '"""', "a", "\\n", "\\", "\\'", '\\"', "\n", "\t", "é", "\\u00e9", "\\U0001F388"),
        *("\\u12", "#", "\u2028", "\x01", "\ufffe", " "),
    ),
    "number": ("1", "0", ".", "e", "E", "+", "-", "1", "5"),
    "iri": (
        *("http://a", "/", "..", "#", "?", "x", ":", "%41", "%", "\\u0041", "é", "[", "]", "@", "urn:"),
        ".",
    ),
}


def spelled(rng: random.Random, pattern: Pattern) -> str:
    """Write a pattern in some spelling: abbreviated or not, keywords in any case, any quotes, any blanks."""
    found = [_filter(rng, each) for each in map(print_expression, pattern.filters)]
    found += _triples(rng, pattern)
    head = print_pattern(pattern).partition("{")[0]
    if pattern.form == SELECT and rng.random() < 0.5:
        head = head.replace("?", "$")
    words = cut(f"{_cased(rng, head)} {rng.choice(('', 'WHERE', 'where'))} {{ {' '.join(found)} }}")
    text = "".join(word + rng.choice(_GAPS) for word in words)
    # SPARQL has no comment between the parentheses of an empty list.
    return PROLOGUE + re.sub(r"\((?:\s|#.*\n)+\)", "( )", text)


def nearly(rng: random.Random) -> str:
    """Write a filter with up to three words too many, too few, or wrong."""
    words = cut(PROLOGUE + print_pattern(random_pattern(rng)))
    for _ in range(rng.randrange(4)):
        place, draw = rng.randrange(len(words) + 1), rng.random()
        if draw < 0.3:
            del words[place : place + 1]
        elif draw < 0.6:
            words.insert(place, rng.choice(_SOUP))
        elif draw < 0.8:
            words[place : place + 1] = [rng.choice(_SOUP)]
        else:
            other = rng.randrange(len(words) + 1)
            words[place : place + 1], words[other : other + 1] = (
                words[other : other + 1],
                words[place : place + 1],
            )
    return " ".join(words)


def random_word(rng: random.Random) -> str:
    """Write a name, a string, a number or an IRI, or what is nearly one."""
    kind = rng.choice(tuple(_PIECES))
    pieces = [rng.choice(_PIECES[kind]) for _ in range(rng.randrange(1, 8))]
    if kind == "iri":
        return f"<{''.join(pieces)}>"
    if kind == "name":
        return rng.choice(("ex:", ":", "x.y-z:")) + "".join(pieces)
    if kind == "string":
        quote = rng.choice(('"', "'", '"""', "'''"))
        return f"{quote}{''.join(pieces)}{quote}{rng.choice(('', '', '@en-GB', '^^xsd:int', '@x', '^^ex:a'))}"
    return "".join(pieces)


def _triples(rng: random.Random, pattern: Pattern) -> list[str]:
    """Write the edges in their order, some of one subject joined by semicolons, of one property by commas."""
    found: list[str] = []
    before: Edge | None = None
    for edge in pattern.edges:
        verb = _verb(rng, edge)
        if before is not None and before.subject == edge.subject and rng.random() < 0.7:
            same = before.property == edge.property and before.path == edge.path and rng.random() < 0.7
            found.append(", " if same else "; ; " if rng.random() < 0.3 else "; ")
            found.append(_term(rng, edge.object) if same else f"{verb} {_term(rng, edge.object)}")
        else:
            found.append(" . " if before else "")
            found.append(f"{_term(rng, edge.subject)} {verb} {_term(rng, edge.object)}")
        before = edge
    return [*found, rng.choice(("", " .", " ;", " ; ."))]


def _verb(rng: random.Random, edge: Edge) -> str:
    if edge.path != PLAIN:
        return rng.choice(_PATHS[edge.path])
    return rng.choice(("a", "rdf:type", "(a)")) if edge.property == TYPE else _term(rng, edge.property)


def _filter(rng: random.Random, text: str) -> str:
    """Write a filter, to stand before all triples."""
    return f"{_cased(rng, 'FILTER')} ({text}) {rng.choice(('', '.'))}"


def _cased(rng: random.Random, text: str) -> str:
    changes = (str, str.lower, str.title)
    return re.sub(r"(?<![?$])\b[A-Z]+\b", lambda found: rng.choice(changes)(found[0]), text)


def _term(rng: random.Random, term: Term) -> str:
    if term.startswith(f"<{EX}p") and rng.random() < 0.3:
        return f":{term[len(EX) + 2 : -1]}"
    if term.startswith(f"<{EX}") and rng.random() < 0.8:
        local = term[len(EX) + 1 : -1]
        return rng.choice((f"ex:{local}", f"<../../{local}>", f"</{local}>"))
    if term.startswith("?") and not term.startswith("?:") and rng.random() < 0.3:
        return f"${term[1:]}"
    if term.startswith('"') and rng.random() < 0.8:
        return _literal(rng, term)
    return print_term(term)


def _literal(rng: random.Random, term: Term) -> str:
    lexical, datatype, language = parts(term)
    quote = rng.choice(('"', "'", '"""', "'''"))
    text = lexical.replace("\\", "\\\\").replace(quote[0], f"\\{quote[0]}")
    if len(quote) == 1 or rng.random() < 0.5:
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    text = text.replace("🎈", rng.choice(("🎈", "\\U0001F388")))
    if language:
        return f"{quote}{text}{quote}@{rng.choice((language, language.upper()))}"
    if datatype.startswith(XSD) and rng.random() < 0.7:
        return f"{quote}{text}{quote}^^{rng.choice(('xsd:', 'x.y-z:'))}{datatype[len(XSD) :]}"
    return f"{quote}{text}{quote}^^<{datatype}>"
