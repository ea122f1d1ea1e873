"""The filter language as a small tree of frozen dataclasses.

    Expression = And | Or | Not | Constant | Predicate
    Predicate  = Comparison | Between | In | Like | HasWord | IsNull | Truth | ArrayContains | ArraysOverlap
               | ForAll

A predicate looks at one attribute and compares it with literals. `NOT IN`, `IS NOT NULL`, `NOT LIKE` and
`NOT BETWEEN` are `Not` around the positive predicate. Every expression is TRUE, FALSE or NULL (None).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from headgate.core.event import EVENT_TIME
from headgate.core.values import PRESENT, part_of
from headgate.records.computed import EXPRESSION, LOWER

if TYPE_CHECKING:
    from headgate.core.values import Path
    from headgate.records.expressions.expression import Expression as Computed


class LiteralType(Enum):
    """The type that Spark gives a literal; DECIMAL is what `1.5` is, DOUBLE is `1.5e0`."""

    NULL = "null"
    BOOL = "boolean"
    INT = "whole number"
    DECIMAL = "decimal"
    DOUBLE = "double"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"


NUMBERS = frozenset({LiteralType.INT, LiteralType.DECIMAL, LiteralType.DOUBLE})
MOMENTS = frozenset({LiteralType.DATE, LiteralType.TIMESTAMP})


@dataclass(frozen=True)
class Literal:
    """A literal; dates and timestamps are microseconds since 1970 in UTC."""

    type: LiteralType
    value: bool | int | Decimal | float | str | None


NULL = Literal(LiteralType.NULL, None)


@dataclass(frozen=True)
class Attribute:
    """A dotted name, as written and folded, or a function of it; two spellings of one name are equal.

    An expression over attributes stands for one, too: then it has no name of its own.
    """

    path: Path
    names: tuple[str, ...]
    function: str = ""
    expression: Computed | None = None

    @classmethod
    def of(cls, *names: str) -> Attribute:
        """Name an attribute.

        >>> Attribute.of("User", "age") == Attribute.of("user", "AGE")
        True
        """
        return cls(tuple(map(part_of, names)), names)

    @classmethod
    def computed(cls, expression: Computed) -> Attribute:
        """Make what an expression gives an attribute."""
        return cls((), (), EXPRESSION, expression)

    def __eq__(self, other: object) -> bool:
        """Compare folded."""
        return isinstance(other, Attribute) and self.key == other.key

    def __hash__(self) -> int:
        """Hash folded."""
        return hash(self.key)

    @property
    def key(self) -> Path:
        """Return the path of what is compared: of a function, that of a computed attribute.

        >>> Attribute.of("Name").lowered.key
        ('LOWER', 'name')
        """
        if self.expression is not None:
            return (EXPRESSION, self.expression.text)
        return (self.function, *self.path) if self.function else self.path

    @property
    def sources(self) -> tuple[Path, ...]:
        """Return the paths of what events have of it.

        >>> Attribute.of("Name").lowered.sources
        (('name',),)
        """
        paths = (self.path,) if self.expression is None else self.expression.attributes
        return tuple(path[1:] if path[0] == PRESENT else path for path in paths if path != EVENT_TIME)

    @property
    def lowered(self) -> Attribute:
        """Return its lower case."""
        return replace(self, function=LOWER)


class Op(Enum):
    """The comparisons."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NULL_SAFE_EQ = "<=>"


@dataclass(frozen=True)
class Comparison:
    """`attribute op literal`."""

    op: Op
    attribute: Attribute
    literal: Literal


@dataclass(frozen=True)
class Between:
    """`attribute BETWEEN low AND high`."""

    attribute: Attribute
    low: Literal
    high: Literal


@dataclass(frozen=True)
class In:
    """`attribute IN (literals)`; all of one family: numbers, strings, Booleans or moments, and NULL."""

    attribute: Attribute
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Like:
    """`attribute LIKE pattern`, with the pattern as written and its escape character.

    `attribute ILIKE pattern` is this of both in lower case.
    """

    attribute: Attribute
    pattern: str
    escape: str = "\\"


@dataclass(frozen=True)
class HasWord:
    r"""`attribute RLIKE '(?i)\\bword\\b'`, with the word folded as `core/text/alphabets.py` says."""

    attribute: Attribute
    word: str


@dataclass(frozen=True)
class IsNull:
    """`attribute IS NULL`."""

    attribute: Attribute


@dataclass(frozen=True)
class Truth:
    """A bare Boolean attribute."""

    attribute: Attribute


@dataclass(frozen=True)
class ArrayContains:
    """`array_contains(attribute, literal)`."""

    attribute: Attribute
    literal: Literal


@dataclass(frozen=True)
class ArraysOverlap:
    """`arrays_overlap(attribute, array(literals))`."""

    attribute: Attribute
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class ForAll:
    """`forall(attribute, x -> x IN (literals))`, or with `nulls` `x -> x IS NULL OR x IN (literals)`.

    With `nulls` and without literals it is `x -> x IS NULL`. Elements meet literals as values do in IN.
    """

    attribute: Attribute
    literals: tuple[Literal, ...]
    nulls: bool = False


@dataclass(frozen=True)
class Constant:
    """`TRUE`, `FALSE` or `NULL` as an expression."""

    value: bool | None


@dataclass(frozen=True)
class Not:
    """`NOT child`."""

    child: Expression


@dataclass(frozen=True)
class And:
    """`child AND child AND …`, two or more."""

    children: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """`child OR child OR …`, two or more."""

    children: tuple[Expression, ...]


Predicate: TypeAlias = (
    Comparison | Between | In | Like | HasWord | IsNull | Truth | ArrayContains | ArraysOverlap | ForAll
)
Textual: TypeAlias = Like | HasWord
"""What asks for a text, and holds for nothing else."""
Expression: TypeAlias = And | Or | Not | Constant | Predicate


def predicates(expression: Expression) -> list[Predicate]:
    """List the predicates from left to right."""
    listed: list[Predicate] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or):
            stack.extend(reversed(node.children))
        elif isinstance(node, Not):
            stack.append(node.child)
        elif not isinstance(node, Constant):
            listed.append(node)
    return listed


def common_type(literals: tuple[Literal, ...]) -> LiteralType | None:
    """Find the one type that Spark compares a list of literals in; None if we refuse the mixture.

    >>> common_type((Literal(LiteralType.INT, 1), Literal(LiteralType.DOUBLE, 2.0))).name
    'DOUBLE'
    """
    types = {literal.type for literal in literals} - {LiteralType.NULL}
    if not types:
        return LiteralType.NULL
    if len(types) == 1:
        return types.pop()
    if types <= NUMBERS:
        # Departure: over a STRING column Spark rounds the texts in `IN (1, 1.5)` to one digit, but casts them
        # to double in `IN (1.5, 1)`; here texts are cast to double in both.
        return LiteralType.DOUBLE if LiteralType.DOUBLE in types else LiteralType.DECIMAL
    return LiteralType.TIMESTAMP if types <= MOMENTS else None


def convert(literal: Literal, to: LiteralType) -> Literal:
    """Cast a literal to the common type of its list."""
    if literal.type in {to, LiteralType.NULL}:
        return literal
    if to is LiteralType.DOUBLE and isinstance(literal.value, int | Decimal):
        return Literal(to, float(literal.value))
    if to is LiteralType.DECIMAL and isinstance(literal.value, int):
        return Literal(to, Decimal(literal.value))
    assert to is LiteralType.TIMESTAMP
    return Literal(to, literal.value)
