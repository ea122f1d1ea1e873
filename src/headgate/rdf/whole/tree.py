"""Trees of whole queries: what an index can take out of them, and where their words stand.

Expressions are not taken apart further than the index needs: which variables they name, which parts `&&`
joins, and which groups EXISTS asks for. The evaluator reads their words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from headgate.rdf.language.model import Term


class Inverse(NamedTuple):
    """`^path`."""

    path: Path


class Chain(NamedTuple):
    """`one/other/…`."""

    steps: tuple[Path, ...]


class Choice(NamedTuple):
    """`one|other|…`."""

    options: tuple[Path, ...]


class Repeat(NamedTuple):
    """`path*`, `path+` or `path?`."""

    path: Path
    sign: str


class Negated(NamedTuple):
    """`!(one|^other)`: properties that it does not follow, and those that it does not go back by."""

    forward: tuple[Term, ...]
    back: tuple[Term, ...]

    @property
    def ways(self) -> tuple[bool, bool]:
        """Tell whether it leads forward, and back."""
        return bool(self.forward) or not self.back, bool(self.back)


Path: TypeAlias = "Term | Inverse | Chain | Choice | Repeat | Negated"


class Triple(NamedTuple):
    """A triple pattern; `path` is a term where it is a property or a variable."""

    subject: Term
    path: Path
    object: Term


class Block(NamedTuple):
    """Triple patterns that stand together, and the numbers of their first word and of the one behind."""

    triples: tuple[Triple, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Expression:
    """An expression: its words, its variables but those within EXISTS, and what it is made of.

    `joined` are the parts that `&&` joins, `exists` the group of one that is [NOT] EXISTS as a whole.
    """

    begin: int
    end: int
    variables: frozenset[Term] = frozenset()
    joined: tuple[Expression, ...] = ()
    exists: Group | None = None
    absent: bool = False
    groups: tuple[Group, ...] = ()
    aggregate: bool = False


class Filter(NamedTuple):
    """FILTER."""

    condition: Expression


class Optional(NamedTuple):
    """OPTIONAL."""

    group: Group


class Either(NamedTuple):
    """Groups that UNION joins."""

    groups: tuple[Group, ...]


class Minus(NamedTuple):
    """MINUS."""

    group: Group


class Bind(NamedTuple):
    """BIND."""

    expression: Expression
    variable: Term


class Values(NamedTuple):
    """VALUES: a row has a term for each variable, None for UNDEF."""

    variables: tuple[Term, ...]
    rows: tuple[tuple[Term | None, ...], ...]


class Group(NamedTuple):
    """What stands between braces."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Select:
    """A query, or one within another.

    `selected` are the variables that it gives, None for all, and `star` the number of that word. `computed`
    are those of them that an expression gives. `group_by` are the variables of GROUP BY, None without one.
    """

    form: str
    group: Group
    body: int
    """The number of the first word of the group."""
    selected: tuple[Term, ...] | None = None
    star: int = -1
    computed: frozenset[Term] = frozenset()
    expressions: tuple[Expression, ...] = ()
    group_by: tuple[Term, ...] | None = None
    having: tuple[Expression, ...] = ()
    limit: int | None = None
    offset: int = 0
    values: Values | None = None
    others: tuple[Expression, ...] = ()
    """Those of GROUP BY and ORDER BY."""

    @property
    def aggregates(self) -> bool:
        """Tell whether answers are made of several solutions."""
        return self.group_by is not None or any(
            each.aggregate for each in (*self.expressions, *self.having, *self.others)
        )


Part: TypeAlias = "Block | Filter | Optional | Either | Minus | Bind | Values | Group | Select"


def visible(group: Group) -> dict[Term, None]:
    """List the variables that a group gives, in the order in which they are written.

    >>> list(visible(Group((Block((Triple("?x", "<urn:p>", "?:b0"),), 0, 3),))))
    ['?x']
    """
    found: dict[Term, None] = {}
    for part in group.parts:
        if isinstance(part, Block):
            for triple in part.triples:
                found.update(
                    (term, None)
                    for term in triple
                    if isinstance(term, str) and term[0] == "?" and not term.startswith("?:")
                )
        elif isinstance(part, Optional):
            found |= visible(part.group)
        elif isinstance(part, Either):
            for each in part.groups:
                found |= visible(each)
        elif isinstance(part, Bind):
            found[part.variable] = None
        elif isinstance(part, Values):
            found |= dict.fromkeys(part.variables)
        elif isinstance(part, Group):
            found |= visible(part)
        elif isinstance(part, Select):
            found |= dict.fromkeys(selected_of(part))
    return found


def selected_of(query: Select) -> tuple[Term, ...]:
    """List the variables that a query gives."""
    if query.selected is not None:
        return query.selected
    found = visible(query.group)
    if query.values is not None:
        found |= dict.fromkeys(query.values.variables)
    return tuple(found)
