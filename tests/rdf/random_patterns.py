"""Random patterns, graphs and taxonomies over one small vocabulary, so that a quarter of all pairs match.

Everything is drawn from one `random.Random`, so a seed names a case and hypothesis can drive it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.events.reading import make_graph
from headgate.rdf.language.model import (
    BELOW,
    BELOW_PROPERTY,
    ISA,
    SELECT,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
    And,
    Call,
    Compare,
    Edge,
    Member,
    Not,
    Or,
    Pattern,
    iri,
    literal,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from headgate.rdf.language.model import Expression, Graph, Term

EX = "http://example.org/"
NODES = tuple(iri(f"{EX}n{number}") for number in range(4))
CLASSES = tuple(iri(f"{EX}C{number}") for number in range(6))
PROPERTIES = tuple(iri(f"{EX}p{number}") for number in range(3))
BLANKS = ("_:b0", "_:b1")
VARIABLES = ("?x", "?y", "?z", "?u", "?v", "?w")
BLANK_VARIABLES = ("?:b0", "?:b1")

COMMON = (
    *(literal(str(number), f"{XSD}integer") for number in (1, 2, 3)),
    literal("2.0", f"{XSD}decimal"),
    literal("a"),
    literal("ab"),
    literal("a", language="en"),
    literal("true", f"{XSD}boolean"),
)
ODD = (
    literal(""),
    literal("1"),
    literal(" 2 "),
    literal("true"),
    literal("2001-01-01"),
    literal("b"),
    literal('say "hi"\n\\ zoë 🎈\t\x01'),
    literal("ab", language="en-gb"),
    literal("ab", language="fr"),
    *(
        literal(each, f"{XSD}integer")
        for each in (
            "01",
            "+1",
            "-3",
            "-0",
            "abc",
            "",
            "2.5",
            "9007199254740993",
            "9007199254740992",
            "18446744073709551617",
            "18446744073709551616",
            "-9223372036854775809",
        )
    ),
    *(literal(each, f"{XSD}decimal") for each in ("2.50", "-0.0", "1", ".5", "9007199254740993.5", "1e3")),
    *(
        literal(each, f"{XSD}double")
        for each in ("1e0", "2.5E0", "NaN", "INF", "-INF", "-0", "9007199254740992")
    ),
    *(literal(each, f"{XSD}float") for each in ("1.0", "0.1", "NaN", "INF", "16777217")),
    *(literal(each, f"{XSD}int") for each in ("2", "3000000000")),
    literal("3", f"{XSD}unsignedByte"),
    *(literal(each, f"{XSD}boolean") for each in ("false", "1", "0", "yes")),
    *(
        literal(each, f"{XSD}dateTime")
        for each in (
            "2001-01-01T00:00:00Z",
            "2001-01-01T01:00:00+01:00",
            "2001-01-01T00:00:00",
            "2001-01-01T23:00:00",
            "2000-12-31T24:00:00Z",
            "2001-01-01T00:00:00.5Z",
            "2001-02-30T00:00:00Z",
        )
    ),
    *(
        literal(each, f"{XSD}date")
        for each in ("2001-01-01", "2001-01-01Z", "2001-06-15+02:00", "2001-13-01")
    ),
    literal("2", f"{EX}grade"),
    literal("3", f"{EX}grade"),
)
DATATYPES = tuple(
    iri(f"{XSD}{name}") for name in ("string", "integer", "decimal", "double", "boolean", "dateTime", "date")
)
REGEXES = (
    "",
    "A",
    "b",
    "^a",
    "B$",
    "^AB$",
    r"\bA\b",
    r"\bab\b",
    r"\bhi\b",
    r"(^|\W)example(\W|$)",
    r"a\.b",
    "1",
)
SIGNS = ("=", "!=", "<", "<=", ">", ">=")


def random_literal(rng: random.Random) -> Term:
    """Draw a literal, mostly one of a few."""
    return _pick(rng, COMMON) if rng.random() < 0.7 else rng.choice(ODD)


def random_graph(rng: random.Random) -> Graph:
    """Draw an event of up to 50 triples; some of them are about classes and properties."""
    statements = [_statement(rng) for _ in range(rng.choice((0, 3, 6, 10, 15, 20, 25, 30, 40, 50)))]
    return make_graph(statements)


def random_taxonomy(rng: random.Random) -> list[tuple[Term, Term, Term]]:
    """Draw a taxonomy: subclasses, subproperties, instances; several parents, and cycles now and then."""
    found = [(rng.choice(CLASSES), SUBCLASS, _pick(rng, CLASSES)) for _ in range(rng.randrange(10))]
    found += [(rng.choice(PROPERTIES), SUBPROPERTY, _pick(rng, PROPERTIES)) for _ in range(rng.randrange(4))]
    found += [(_pick(rng, NODES), TYPE, rng.choice(CLASSES)) for _ in range(rng.randrange(4))]
    rng.shuffle(found)
    return found


def random_pattern(rng: random.Random) -> Pattern:
    """Draw a pattern of one to five edges, perhaps a few checks of the taxonomy, and filters."""
    edges = [_edge(rng) for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 6)))]
    if rng.random() < 0.25:
        edges += _checks(rng, Pattern(tuple(edges)).variables)
        rng.shuffle(edges)
    found = Pattern(tuple(edges))
    named = [each for each in found.variables if not each.startswith("?:")]
    filters = tuple(_filter(rng, named) for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))))
    if rng.random() < 0.6:
        return Pattern(found.edges, filters)
    chosen = named if rng.random() < 0.4 else [each for each in named if rng.random() < 0.6] or named
    return Pattern(found.edges, filters, SELECT, tuple(chosen), rng.random() < 0.3)


def planted_pattern(rng: random.Random, graph: Graph) -> Pattern:
    """Draw a pattern whose edges a graph has: some triples with variables in place of some terms.

    A long pattern drawn blindly hardly ever matches; this one always does, but for its filters.
    """
    statements = graph.statements()
    if not statements:
        return random_pattern(rng)
    chosen = [rng.choice(statements) for _ in range(rng.choice((2, 3, 4, 5, 6, 8)))]
    stands: dict[Term, Term] = {}
    for term in dict.fromkeys(term for statement in chosen for term in statement):
        if term.startswith("_") or rng.random() < (0.2 if term in PROPERTIES else 0.6):
            stands[term] = f"?v{len(stands)}"
    edges = []
    for subject, name, end in chosen:
        ends = stands.get(subject, subject), stands.get(end, end)
        isa = name == TYPE and not end.startswith('"') and rng.random() < 0.5
        edges.append(
            Edge(ends[0], ISA, ends[1], ISA) if isa else Edge(ends[0], stands.get(name, name), ends[1])
        )
    variables = Pattern(tuple(edges)).variables
    filters = (_filter(rng, variables),) if rng.random() < 0.3 else ()
    return Pattern(tuple(edges), filters)


def _filter(rng: random.Random, variables: Sequence[Term]) -> Expression:
    """Draw a filter, half of them with a way out that is often true."""
    found = random_expression(rng, variables)
    draw = rng.random()
    if draw < 0.25:
        return Or((found, Call("ISIRI", (_variable(rng, variables),))))
    if draw < 0.5:
        return Or((Compare("!=", Call("STR", (_variable(rng, variables),)), literal("b")), found))
    return found


def random_expression(rng: random.Random, variables: Sequence[Term], depth: int = 2) -> Expression:
    """Draw something that a FILTER can hold, over some variables."""
    draw = rng.random()
    if depth > 0 and draw < 0.14:
        return Or(_some(rng, variables, depth))
    if depth > 0 and draw < 0.17:
        return And(_some(rng, variables, depth))
    if depth > 0 and draw < 0.27:
        return Not(random_expression(rng, variables, depth - 1))
    if draw < 0.62:
        return _comparison(rng, variables, depth)
    if draw < 0.72:
        size = rng.choice((0, 1, 2, 3, 6))
        return Member(
            _operand(rng, variables, depth), tuple(_operand(rng, variables, 0) for _ in range(size))
        )
    if draw < 0.95:
        return _truth(rng, variables)
    return _variable(rng, variables)


def _statement(rng: random.Random) -> tuple[Term, Term, Term]:
    draw = rng.random()
    node = _pick(rng, NODES) if rng.random() < 0.8 else rng.choice(BLANKS)
    name = _pick(rng, PROPERTIES)
    if draw < 0.22:
        return node, TYPE, rng.choice(CLASSES)
    if draw < 0.27:
        return rng.choice(CLASSES), SUBCLASS, _pick(rng, CLASSES)
    if draw < 0.29:
        return rng.choice(PROPERTIES), SUBPROPERTY, rng.choice(PROPERTIES)
    if draw < 0.36:
        return rng.choice(PROPERTIES), name, rng.choice((*NODES, *COMMON, *PROPERTIES))
    if draw < 0.43:
        return node, name, node
    if draw < 0.46:
        return node, name, rng.choice(PROPERTIES)
    if draw < 0.72:
        return node, name, random_literal(rng)
    return node, name, _pick(rng, (*NODES, *BLANKS))


def _edge(rng: random.Random) -> Edge:
    draw = rng.random()
    if draw < 0.2:
        return Edge(_subject(rng), ISA, _pick(rng, CLASSES) if rng.random() < 0.75 else _node(rng), ISA)
    if draw < 0.28:
        return Edge(_subject(rng), TYPE, _pick(rng, CLASSES) if rng.random() < 0.5 else _node(rng))
    subject = _subject(rng)
    name = _pick(rng, PROPERTIES) if rng.random() < 0.75 else rng.choice(VARIABLES)
    if draw < 0.35:
        return Edge(subject, name, subject)
    if draw < 0.45:
        return Edge(subject, name, random_literal(rng))
    if draw < 0.53:
        return Edge(subject, name, _pick(rng, NODES))
    if draw < 0.56:
        return Edge(rng.choice((*PROPERTIES, *CLASSES)), rng.choice((*PROPERTIES, SUBCLASS)), _node(rng))
    return Edge(subject, name, _node(rng))


def _subject(rng: random.Random) -> Term:
    return _pick(rng, NODES) if rng.random() < 0.12 else _node(rng)


def _node(rng: random.Random) -> Term:
    return rng.choice(VARIABLES) if rng.random() < 0.85 else rng.choice(BLANK_VARIABLES)


def _checks(rng: random.Random, variables: Sequence[Term]) -> list[Edge]:
    """Draw checks of the taxonomy, of variables that are bound elsewhere."""
    found = []
    for _ in range(rng.choice((1, 1, 2)) if variables else 0):
        path, constants = rng.choice(((BELOW, CLASSES), (BELOW_PROPERTY, PROPERTIES)))
        sides = [rng.choice(variables), rng.choice(constants if rng.random() < 0.7 else variables)]
        rng.shuffle(sides)
        found.append(Edge(sides[0], path, sides[1], path))
    return found


def _some(rng: random.Random, variables: Sequence[Term], depth: int) -> tuple[Expression, ...]:
    return tuple(random_expression(rng, variables, depth - 1) for _ in range(rng.choice((2, 2, 3))))


def _comparison(rng: random.Random, variables: Sequence[Term], depth: int) -> Compare:
    sides = [_operand(rng, variables, depth), _operand(rng, variables, depth)]
    if rng.random() < 0.7:
        sides = [_variable(rng, variables), rng.choice(COMMON) if rng.random() < 0.8 else _constant(rng)]
        if rng.random() < 0.2:
            sides.reverse()
    return Compare(rng.choice((*SIGNS, "!=", "!=")), sides[0], sides[1])


def _operand(rng: random.Random, variables: Sequence[Term], depth: int) -> Expression:
    draw = rng.random()
    if draw < 0.5:
        return _variable(rng, variables)
    if draw < 0.8:
        return _constant(rng)
    if draw < 0.94 or depth <= 0:
        return Call(rng.choice(("STR", "LANG", "DATATYPE", "LCASE")), (_variable(rng, variables),))
    return random_expression(rng, variables, depth - 1)


def _truth(rng: random.Random, variables: Sequence[Term]) -> Call:
    """Draw a function that is true or false, mostly of what it can be asked of."""
    name = rng.choice(("ISIRI", "ISLITERAL", "STRSTARTS", "STRENDS", "CONTAINS", "REGEX"))
    subject: Expression = _variable(rng, variables)
    if name.startswith("IS"):
        return Call(name, (subject,))
    if rng.random() < 0.6:
        subject = Call("STR", (subject,))
    if name == "REGEX":
        flags = rng.choice(((), (literal("i"),), (literal("i"),)))
        return Call(name, (subject, literal(rng.choice(REGEXES)), *flags))
    if rng.random() < 0.3:
        subject = Call("LCASE", (subject,))
    what = rng.choice(
        (literal("a"), literal("b"), literal(""), literal("1"), literal(EX), literal("a", language="en"))
    )
    return Call(name, (subject, what if rng.random() < 0.9 else _variable(rng, variables)))


def _pick(rng: random.Random, terms: Sequence[Term]) -> Term:
    """Draw a term, the first of them more often than the last."""
    return terms[int(len(terms) * rng.random() ** 2)]


def _variable(rng: random.Random, variables: Sequence[Term]) -> Term:
    return rng.choice(variables) if variables else _constant(rng)


def _constant(rng: random.Random) -> Term:
    draw = rng.random()
    if draw < 0.7:
        return random_literal(rng)
    return rng.choice(DATATYPES) if draw < 0.8 else rng.choice((*NODES, *CLASSES, *PROPERTIES))
