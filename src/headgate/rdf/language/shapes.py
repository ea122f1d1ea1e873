"""Templates of filters: what texts of one shape have in common, with slots for their words.

A shape is asked of the parser once. Its template says which words are terms, which of them make edges, and
how filters are put together of them once the terms in its slots are known; filling it in is a fraction of
parsing.

Slots number the terms of a text: first those of single words, then strings with a language or a datatype,
then terms that no word writes: blank nodes of brackets, and rdf:type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.rdf.language import words
from headgate.rdf.language.model import (
    ASK,
    BELOW,
    PLAIN,
    SELECT,
    And,
    Call,
    Compare,
    Expression,
    Member,
    Not,
    Or,
    Term,
)
from headgate.rdf.language.refusal import (
    BAD_PATH,
    RefusedFilterError,
    UnsupportedFilterError,
    check_edges,
)

if TYPE_CHECKING:
    from headgate.rdf.language.grammar import Node
    from headgate.rdf.language.words import Kinds


Maker: TypeAlias = Callable[[Sequence[Term]], Expression]
"""Makes an expression of the terms by slot."""

SIGNS = {kind: sign for sign, kind in words.SIGNS.items() if kind in ("EQ", "NE", "LT", "LE", "GT", "GE")}
_TAKES = {**dict.fromkeys(("STRSTARTS", "STRENDS", "CONTAINS"), (2,)), "REGEX": (2, 3)}
_SAME = {"ISURI": "ISIRI"}


def compared(sign: str, left: Maker, right: Maker) -> Maker:
    """Make a comparison."""
    return lambda terms: Compare(sign, left(terms), right(terms))


def is_member(item: Maker, options: Sequence[Maker]) -> Maker:
    """Make an IN."""
    return lambda terms: Member(item(terms), tuple([each(terms) for each in options]))


def called(function: Node, arguments: Sequence[Maker]) -> Maker:
    """Make a call, with as many arguments as the function takes."""
    name = _SAME.get(function.name, function.name)
    takes = _TAKES.get(name, (1,))
    if len(arguments) not in takes:
        raise RefusedFilterError(
            f"{name} takes {' or '.join(map(str, takes))} argument{'s' * (takes != (1,))}", function.number
        )
    return lambda terms: Call(name, tuple([each(terms) for each in arguments]))


def both(parts: Sequence[Maker]) -> Maker:
    """Make an And."""
    return lambda terms: And(tuple([each(terms) for each in parts]))


def either(parts: Sequence[Maker]) -> Maker:
    """Make an Or."""
    return lambda terms: Or(tuple([each(terms) for each in parts]))


def negated(part: Maker) -> Maker:
    """Make a Not."""
    return lambda terms: Not(part(terms))


CHAIN = "chain"
"""The path `first/property*`."""
REPEATED = "repeated"
"""The path `property*`."""
FRESH = ""
"""In place of a term: a blank node that has no name yet."""

_TERMS = frozenset(
    (
        words.IRI,
        words.NAME,
        words.PREFIX_NAME,
        words.VARIABLE,
        words.BLANK,
        words.STRING,
        words.NUMBER,
        words.TRUTH,
        words.A,
        words.BARE,
    )
)
VALUES = ("string", words.NUMBER, words.TRUTH)
"""Literals, as nodes of the tree."""
_UNBOUND = "the filter looks at {}, which no triple binds"
_UNBOUND_SELECT = "SELECT names {}, which no triple binds"
_UNBOUND_PATH = "the path looks at {}, which no other triple binds"
_NAMES = (words.IRI, words.NAME, words.PREFIX_NAME, words.A)


class Step(NamedTuple):
    """An edge in slots. `path` is one of the model's, or CHAIN or REPEATED where the words' values decide."""

    subject: int
    property: int
    object: int
    path: str = PLAIN
    first: int = -1


class Join(NamedTuple):
    """A literal of several words: the slot of the string; the word of the language or the type's slot."""

    text: int
    language: int
    datatype: int


class Template(NamedTuple):
    """What the texts of a shape share."""

    declarations: tuple[tuple[int, int], ...]
    """Words of a prefix, -1 for BASE, and of its IRI."""
    prologue: int
    """How many words the declarations are."""
    places: tuple[int, ...]
    """The words that are terms by themselves, by slot."""
    joins: tuple[Join, ...]
    extra: tuple[Term, ...]
    steps: tuple[Step, ...]
    binding: tuple[int, ...]
    """Slots of variables that plain and ISA steps bind."""
    needing: tuple[tuple[int, int, str], ...]
    """Slots of variables that have to be bound; the word at fault if one is not, and what to say of it."""
    filters: tuple[Maker, ...]
    form: str
    selected: tuple[int, ...] | None
    """Slots of the variables of SELECT; None for all."""
    distinct: bool
    paired: tuple[tuple[int, int], ...]
    """Slots of variables of constraints, and of the node that they are to constrain."""
    languages: tuple[int, ...]
    """Slots of strings that a language is compared with."""
    regexes: tuple[tuple[int, int], ...]
    """Slots of regular expressions, and of their flags or -1."""


class Builder:
    """Walks the tree of a shape and collects its template."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.declarations: list[tuple[int, int]] = []
        self.prologue = 0
        self.slots: dict[int, int] = {}
        self.variables: set[int] = set()
        self.joins: list[Join] = []
        self.extra: list[Term] = []
        self.steps: list[Step] = []
        self.filters: list[Maker] = []
        self.needing: list[tuple[int, int, str]] = []
        self.paired: list[tuple[int, int]] = []
        self.languages: list[int] = []
        self.regexes: list[tuple[int, int]] = []

    def query(self, tree: Node) -> Template:
        """Walk a query."""
        prologue, form = tree.parts
        self.declare(prologue)
        *head, group = form.parts
        for each in group.parts:
            if each.name == "filter":
                self.filters.append(self.expression(each.parts[0]))
            else:
                self.subject(each)
        if self.filters and not self.steps:
            raise RefusedFilterError("a FILTER needs a triple pattern", len(self.kinds) - 1)
        if form.name == "ask":
            return self.template(ASK, ())
        named = [each for each in head if each.name == words.VARIABLE]
        self.needing.extend((self.slots[each.number], each.number, _UNBOUND_SELECT) for each in named)
        selected = tuple(self.slots[each.number] for each in named) or None
        return self.template(SELECT, selected, distinct=any(each.name == "DISTINCT" for each in head))

    def alone(self, tree: Node) -> Template:
        """Walk an expression that no pattern is around."""
        self.number()
        self.filters.append(self.expression(tree.parts[0]))
        return self.template()

    def template(
        self, form: str = ASK, selected: tuple[int, ...] | None = (), *, distinct: bool = False
    ) -> Template:
        """Put together what was collected."""
        return Template(
            tuple(self.declarations),
            self.prologue,
            tuple(self.slots),
            tuple(self.joins),
            tuple(self.extra),
            tuple(self.steps),
            tuple(dict.fromkeys(self.bound())),
            tuple(self.needing),
            tuple(self.filters),
            form,
            selected,
            distinct,
            tuple(self.paired),
            tuple(self.languages),
            tuple(self.regexes),
        )

    def bound(self) -> list[int]:
        """List the slots of variables of steps that bind them."""
        ends = [
            slot
            for step in self.steps
            if step.path not in (REPEATED, BELOW)
            for slot in ((step.subject, step.property, step.object) if step.path == PLAIN else step[0:3:2])
        ]
        return [slot for slot in ends if slot in self.variables]

    def declare(self, prologue: Node) -> None:
        """Note the declarations; number the slots of the words behind them."""
        for each in prologue.parts:
            *prefix, iri = each.parts
            self.declarations.append((prefix[0].number if prefix else -1, iri.number))
            self.prologue = iri.number + 1
        self.number()

    def number(self) -> None:
        """Number the slots of single words."""
        for place in range(self.prologue, len(self.kinds)):
            kind = self.kinds[place]
            if kind in _TERMS:
                slot = self.slots[place] = len(self.slots)
                if kind in (words.VARIABLE, words.BLANK):
                    self.variables.add(slot)

    def subject(self, tree: Node) -> None:
        """Walk the triples of a subject."""
        first, *properties = tree.parts
        if first.name in VALUES:
            raise RefusedFilterError("a literal cannot be the subject of a triple", first.number)
        slot = self.node(first)
        if first.name == "bracket":
            self.properties(slot, first.parts[1])
        for each in properties:
            self.properties(slot, each)

    def properties(self, subject: int, tree: Node) -> None:
        """Walk `property object, object ; property object`."""
        for verb, objects in (pair.parts for pair in tree.parts):
            for each in objects.parts:
                slot = self.node(each)
                self.add(self.step(subject, verb, slot, each), each)
                if each.name == "bracket":
                    self.properties(slot, each.parts[1])

    def add(self, step: Step, node: Node) -> None:
        """Add an edge; `node` is where the filter is at fault if it is one too many."""
        self.steps.append(step)
        check_edges(len(self.steps), node.number)

    def node(self, node: Node) -> int:
        """Give the slot of a subject or an object."""
        if not node.parts:
            return self.slots[node.number]
        if node.name == "string":
            return self.string(node)
        slot = self.more(FRESH)
        self.variables.add(slot)
        return slot

    def more(self, term: Term) -> int:
        """Give a slot to a term that no word writes."""
        self.extra.append(term)
        joins = self.kinds.count(words.LANGUAGE) + self.kinds.count("_TYPED")
        return len(self.slots) + joins + len(self.extra) - 1

    def string(self, node: Node) -> int:
        """Give the slot of a string, with a language or a datatype or neither."""
        text, *behind = node.parts
        slot = self.slots[text.number]
        if not behind:
            return slot
        if behind[0].name == words.LANGUAGE:
            self.joins.append(Join(slot, behind[0].number, -1))
        else:
            self.joins.append(Join(slot, -1, self.slots[behind[0].number]))
        return len(self.slots) + len(self.joins) - 1

    def step(self, subject: int, verb: Node, slot: int, node: Node) -> Step:
        """Make one edge; a property is a variable or a path, which may be a name alone."""
        path = verb.parts[0] if verb.parts else verb
        if not path.parts:
            return Step(subject, self.slots[path.number], slot)
        names = _chain(path)
        if not names:
            raise UnsupportedFilterError(BAD_PATH, path.number)
        if node.name in VALUES:
            raise RefusedFilterError("a literal is neither a class nor a property", node.number)
        first, last = self.slots[names[0].number], self.slots[names[-1].number]
        if len(names) == 2:
            return Step(subject, last, slot, CHAIN, first)
        known = [end for end in (subject, slot) if end in self.variables]
        if not known:
            raise RefusedFilterError("this path between two constants says nothing of an event", path.number)
        self.needing.extend((end, path.number, _UNBOUND_PATH) for end in known)
        return Step(subject, last, slot, REPEATED, first)

    def expression(self, node: Node) -> Maker:
        """Walk an expression."""
        if not node.parts:
            slot = self.slots[node.number]
            if node.name == words.VARIABLE:
                self.needing.append((slot, node.number, _UNBOUND))
            return itemgetter(slot)
        if node.name == "string":
            return itemgetter(self.string(node))
        if any(each.name == "call" and each.parts[0].name == "LANG" for each in node.parts):
            plain = [each for each in node.parts if each.name == "string" and len(each.parts) == 1]
            self.languages += [self.slots[each.number] for each in plain]
        if node.name == "compare":
            left, sign, right = node.parts
            return compared(SIGNS[sign.name], self.expression(left), self.expression(right))
        if node.name == "call":
            if node.parts[0].name == "REGEX":
                self.regex(*node.parts[2:])
            return called(node.parts[0], [self.expression(each) for each in node.parts[1:]])
        makers = [self.expression(each) for each in node.parts]
        if node.name == "not":
            return negated(makers[0])
        if node.name in ("member", "no_member"):
            found = is_member(makers[0], makers[1:])
            return found if node.name == "member" else negated(found)
        return either(makers) if node.name == "or" else both(makers)

    def regex(self, *written: Node) -> None:
        """Note a regular expression, and its flags if it has some: texts that stand there."""
        for each in written:
            if each.name != "string" or len(each.parts) != 1:
                raise UnsupportedFilterError(
                    "REGEX takes texts in quotes behind the first argument", each.number
                )
        if written:
            pattern, *flags = [self.slots[each.parts[0].number] for each in written]
            self.regexes.append((pattern, flags[0] if flags else -1))


def _chain(path: Node) -> list[Node]:
    """List the names of `first/last*` or `last*`; nothing for any other path."""
    steps = path.parts[::2] if path.name == "chain" else (path,)
    last = steps[-1]
    if last.name != "repeated" or last.parts[1].name != "STAR":
        return []
    names = [*steps[:-1], last.parts[0]]
    return names if all(each.name in _NAMES for each in names) else []
