"""Patterns back to SPARQL text; parsing it gives an equal pattern.

The text stands by itself: IRIs are written whole, and no prefix is used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.rdf.language import model

if TYPE_CHECKING:
    from headgate.rdf.language.model import Edge, Expression, Pattern, Term

_PATHS = {
    model.ISA: f"a/{model.SUBCLASS}*",
    model.BELOW: f"{model.SUBCLASS}*",
    model.BELOW_PROPERTY: f"{model.SUBPROPERTY}*",
}
_FUNCTIONS = {
    "ISIRI": "isIRI",
    "ISLITERAL": "isLiteral",
    "LANG": "lang",
    "DATATYPE": "datatype",
    "STR": "str",
}
# Literals that SPARQL writes as bare words, which mean the same literal, lexical form and all.
_WORD = re.compile(
    r'"(?:([+-]?[0-9]+)"\^\^<XSDinteger>|([+-]?[0-9]*\.[0-9]+)"\^\^<XSDdecimal>'
    r"|([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)\"\^\^<XSDdouble>"
    r'|(true|false)"\^\^<XSDboolean>)'.replace("XSD", re.escape(model.XSD))
)


def print_pattern(pattern: Pattern) -> str:
    """Write a pattern.

    >>> from headgate.rdf.language.parse import parse_filter
    >>> print_pattern(parse_filter("PREFIX : <urn:x:> SELECT * { ?x :p 1, [] ; a :C . FILTER(!(?x = :y)) }"))
    'SELECT * { ?x <urn:x:p> 1 . ?x <urn:x:p> _:b0 . ?x a <urn:x:C> . FILTER(!(?x = <urn:x:y>)) }'
    """
    parts = [
        *map(print_edge, pattern.edges),
        *(f"FILTER({print_expression(each)})" for each in pattern.filters),
    ]
    return f"{_head(pattern)} {{ {' . '.join(parts)} }}" if parts else f"{_head(pattern)} {{}}"


def print_edge(edge: Edge) -> str:
    """Write an edge.

    >>> from headgate.rdf.language.model import Edge
    >>> print_edge(Edge("?x", "<http://example.org/year>", '"2001"'))
    '?x <http://example.org/year> "2001"'
    """
    verb = (
        _PATHS[edge.path]
        if edge.path != model.PLAIN
        else "a"
        if edge.property == model.TYPE
        else edge.property
    )
    return f"{print_term(edge.subject)} {verb} {print_term(edge.object)}"


def print_expression(expression: Expression) -> str:
    """Write an expression; one joined by && or || within another stands in parentheses.

    >>> from headgate.rdf.language.model import Call, Compare, Not, Or
    >>> print_expression(Or((Compare(">", "?x", "?y"), Not(Call("ISIRI", ("?x",))))))
    '?x > ?y || !isIRI(?x)'
    """
    match expression:
        case str():
            return print_term(expression)
        case model.Compare(sign, left, right):
            return f"{_operand(left)} {sign} {_operand(right)}"
        case model.Member(item, options):
            return f"{_operand(item)} IN ({_listed(options)})"
        case model.Not(model.Member(item, options)):
            return f"{_operand(item)} NOT IN ({_listed(options)})"
        case model.Not(part):
            return f"!{_operand(part)}"
        case model.Call(name, arguments):
            return f"{_FUNCTIONS.get(name, name)}({_listed(arguments)})"
        case model.And(parts):
            return " && ".join(map(_joined, parts))
        case model.Or(parts):
            return " || ".join(map(_joined, parts))


def print_term(term: Term) -> str:
    """Write a term.

    >>> print_term("?:b0"), print_term('"1"^^<http://www.w3.org/2001/XMLSchema#integer>'), print_term('"1"')
    ('_:b0', '1', '"1"')
    """
    if term.startswith("?:"):
        return f"_{term[1:]}"
    match_ = _WORD.fullmatch(term) if term.startswith('"') else None
    return str(match_[match_.lastindex or 0]) if match_ else term


def _head(pattern: Pattern) -> str:
    if pattern.form != model.SELECT:
        return pattern.form
    named = tuple(each for each in pattern.variables if not each.startswith("?:"))
    chosen = "*" if pattern.selected == named else " ".join(pattern.selected)
    return f"SELECT DISTINCT {chosen}" if pattern.distinct else f"SELECT {chosen}"


def _operand(expression: Expression) -> str:
    text = print_expression(expression)
    return text if isinstance(expression, str | model.Call) else f"({text})"


def _joined(expression: Expression) -> str:
    text = print_expression(expression)
    return f"({text})" if isinstance(expression, model.And | model.Or) else text


def _listed(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(map(print_expression, expressions))
