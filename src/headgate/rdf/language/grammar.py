"""The grammar of filters over the kinds of words, for lark.

It follows the grammar of SPARQL 1.1 where that has a rule. Other paths than those that filters know are
parsed, so that they can be refused for what they are. It is free of context and sees kinds only, so texts of
one shape have one tree.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lark import Lark, Token, Tree, UnexpectedToken
from lark.lexer import Lexer

from headgate.rdf.language import words
from headgate.rdf.language.words import FUNCTIONS, KEYWORDS, SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.rdf.language.words import Kinds

QUERY = "query"
TUPLES = "tuples"
EXPRESSION = "expression"

_TERMS = (
    words.IRI,
    words.NAME,
    words.PREFIX_NAME,
    words.VARIABLE,
    words.BLANK,
    words.STRING,
    words.LANGUAGE,
    words.NUMBER,
    words.A,
    words.BARE,
)
_GRAMMAR = f"""
query: prologue (ask | select)
prologue: (base | prefix)*
base: _BASE IRI
prefix: _PREFIX PREFIX_NAME IRI
ask: _ASK _where
select: _SELECT DISTINCT? (VARIABLE+ | STAR) _where
_where: _WHERE? _OPEN group _CLOSE
group: _triples? (filter _DOT? _triples?)*
_triples: subject | subject _DOT | subject _DOT _triples

subject: _node properties | bracket properties?
properties: pair (_SEMICOLON pair?)*
pair: (VARIABLE | path) objects
objects: _object (_COMMA _object)*
_object: _node | bracket
bracket: BEGIN properties _END
anonymous: BEGIN _END
_node: VARIABLE | BLANK | anonymous | _iri | _literal
_iri: IRI | NAME | PREFIX_NAME
_literal: NUMBER | TRUTH | string
string: STRING | STRING LANGUAGE | STRING _TYPED _iri

path: _alternative
_alternative: _sequence | choice
choice: _alternative PIPE _sequence
_sequence: _step | chain
chain: _sequence SLASH _step
_step: _primary | inverse | repeated
inverse: CARET (_primary | repeated)
repeated: _primary (STAR | PLUS | QUESTION)
_primary: _iri | A | negated | _LEFT _alternative _RIGHT
negated: _NOT_SIGN CARET? _primary

filter: _FILTER (_LEFT _expression _RIGHT | call)
expression: _expression
_expression: _conjunction | or
or: _conjunction (_OR _conjunction)+
_conjunction: _relation | and
and: _relation (_AND _relation)+
_relation: _operand | compare | member | no_member
compare: _operand (EQ | NE | LT | LE | GT | GE) _operand
member: _operand _IN _list
no_member: _operand _NOT _IN _list
_list: _LEFT _RIGHT | _LEFT _expression (_COMMA _expression)* _RIGHT
_operand: _unit | not
not: _NOT_SIGN _unit
_unit: VARIABLE | _iri | _literal | call | _LEFT _expression _RIGHT
call: ({" | ".join(FUNCTIONS)}) _LEFT _expression (_COMMA _expression)* _RIGHT

tuples: prologue tuple+
tuple: _LEFT _item _COMMA _item _COMMA _item (_COMMA constraints)~0..2 _RIGHT
constraints: _OPEN (constraint (_COMMA constraint)*)? _CLOSE
constraint: VARIABLE (EQ | NE | LT | LE | GT | GE) _item
_item: VARIABLE | BLANK | BARE | A | _iri | _literal
"""


class MisplacedWordError(Exception):
    """A word that cannot stand where it stands: its number, and the kinds that could."""

    def __init__(self, number: int, expected: set[str]) -> None:
        super().__init__(number)
        self.number = number
        self.expected = expected


class Node(NamedTuple):
    """A rule of the grammar and its parts, or a kind; `number` is that of the first word that is kept."""

    name: str
    number: int
    parts: tuple[Node, ...] = ()


def tree_of(kinds: Kinds, start: str) -> Node:
    """Find the tree of a shape."""
    try:
        return _node(_parser().parse(kinds, start))
    except UnexpectedToken as error:
        number = len(kinds) if error.token.type == "$END" else int(error.token.value)
        raise MisplacedWordError(number, set(error.accepts or ())) from None


def _node(tree: Token | Tree[Token]) -> Node:
    if isinstance(tree, Token):
        return Node(tree.type, int(tree.value))
    parts = tuple([_node(each) for each in tree.children])
    return Node(str(tree.data), parts[0].number if parts else -1, parts)


class _NumberedLexer(Lexer):
    """Hands the parser kinds in place of a text."""

    def __init__(self, _configuration: Any) -> None:
        pass

    def lex(self, data: Any) -> Iterator[Token]:  # type: ignore[override]  # lark's interface of one argument
        """Number the words."""
        for number, kind in enumerate(data):
            token = Token(kind, kind)
            token.value = number
            yield token


@cache
def _parser() -> Lark:
    kinds = {*SIGNS.values(), *KEYWORDS.values(), *_TERMS}
    declared = f"%declare {' '.join(sorted(kinds))}"
    return Lark(
        f"{_GRAMMAR}\n{declared}", parser="lalr", lexer=_NumberedLexer, start=[QUERY, TUPLES, EXPRESSION]
    )
