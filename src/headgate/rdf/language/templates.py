"""Templates of patterns: what filters of one shape have in common, with slots for their terms.

`template_of` says of the tree of a shape whether it is a pattern: triples and conditions that the index takes
whole. Filling a template in is a fraction of parsing; what the terms decide is looked at then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.core.text.cutting import RefusedFilterError
from headgate.rdf.language import model
from headgate.rdf.language.names import place_of, terms_of
from headgate.rdf.language.refusal import MAX_VARIABLES, too_many
from headgate.rdf.language.rewrite import substitute
from headgate.rdf.language.searches import is_indexed, is_searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.rdf.language.grammar import Shape
    from headgate.rdf.language.model import Expression, Term, Triple
    from headgate.rdf.language.names import Slots

CHAIN = "chain"
"""The path `first/property*`."""
REPEATED = "repeated"
"""The path `property*`."""
_UNBOUND = ", which no triple binds"
_UNBOUND_PATH = "the path looks at {}, which no other triple binds"
_REPEATED = {model.SUBCLASS: model.BELOW, model.SUBPROPERTY: model.BELOW_PROPERTY}


class Step(NamedTuple):
    """An edge in slots. `path` is one of the model's, or CHAIN or REPEATED where the terms decide."""

    subject: Term
    property: Term
    object: Term
    path: str = model.PLAIN
    first: Term = ""


class Template(NamedTuple):
    """What the filters of a shape share that are patterns."""

    slots: Slots
    steps: tuple[Step, ...]
    binding: tuple[Term, ...]
    """Variables that plain and ISA steps bind."""
    needing: tuple[tuple[Term, int, str], ...]
    """Variables that have to be bound; the word at fault if one is not, and what to say of it."""
    filters: tuple[Expression, ...]
    form: str
    selected: tuple[Term, ...] | None
    """The variables of SELECT; None for all."""
    distinct: bool
    paired: tuple[tuple[Term, Term], ...]
    """Variables of constraints, and the node that each is to constrain."""
    languages: tuple[Term, ...]
    """Literals that a language is compared with."""
    searches: bool
    """Whether it has regular expressions, which the index may know or not."""


def made(
    slots: Slots,
    steps: Sequence[Step],
    needing: Sequence[tuple[Term, int, str]],
    filters: Sequence[Expression],
    paired: Sequence[tuple[Term, Term]] = (),
    form: str = model.ASK,
    selected: tuple[Term, ...] | None = (),
    *,
    distinct: bool = False,
) -> Template:
    """Put a template together."""
    ends = (
        term
        for step in steps
        if step.path not in (REPEATED, model.BELOW)
        for term in ((step.subject, step.property, step.object) if step.path == model.PLAIN else step[0:3:2])
    )
    every = [each for condition in filters for each in model.within(condition)]
    return Template(
        slots,
        tuple(steps),
        tuple(dict.fromkeys(filter(model.is_variable, ends))),
        tuple(needing),
        tuple(filters),
        form,
        selected,
        distinct,
        tuple(paired),
        tuple(slot for each in every for slot in _beside_language(each)),
        any(isinstance(each, model.Call) and each.name == "REGEX" for each in every),
    )


def _beside_language(expression: Expression) -> Iterable[Term]:
    """List the literals that stand beside a LANG."""
    beside: tuple[Expression, ...] = ()
    if isinstance(expression, model.Compare):
        beside = (expression.left, expression.right)
    elif isinstance(expression, model.Member):
        beside = (expression.item, *expression.options)
    elif isinstance(expression, model.Call):
        beside = expression.arguments
    if not any(isinstance(each, model.Call) and each.name == "LANG" for each in beside):
        return ()
    return (each for each in beside if isinstance(each, str) and model.is_literal(each))


def template_of(shape: Shape, words: int) -> Template | None:
    """Make the template of a shape of so many words; None if it is more than a pattern."""
    query = shape.query
    more = query.computed or query.aggregates or query.having or query.others
    if more or query.values or query.limit or query.offset or query.modifier == "REDUCED":
        return None
    if query.form not in (model.ASK, model.SELECT):
        return None
    steps: list[Step] = []
    needing = [(slot, index, why + _UNBOUND) for slot, index, why in shape.used]
    filters: list[Expression] = []
    refused: list[RefusedFilterError] = []
    for part in query.group.parts:
        if isinstance(part, model.Filter) and is_indexed(part.condition):
            filters.append(part.condition)
        elif isinstance(part, model.Block):
            for triple in part.triples:
                step = _step(triple, needing, refused)
                if step is None:
                    return None
                steps.append(step)
        else:
            return None
    if refused:
        raise refused[0]
    if filters and not steps:
        raise RefusedFilterError("a FILTER needs a triple pattern", words - 1)
    selected = query.selected if query.form == model.SELECT else ()
    distinct = bool(query.modifier)
    return made(shape.slots, steps, needing, filters, (), query.form, selected, distinct=distinct)


def _step(
    triple: Triple, needing: list[tuple[Term, int, str]], refused: list[RefusedFilterError]
) -> Step | None:
    """Make one edge; None for a path that no index knows."""
    subject, path, end = triple
    if isinstance(path, str):
        return Step(subject, path, end)
    *firsts, last = path.steps if isinstance(path, model.Chain) else (path,)
    if (
        not isinstance(last, model.Repeat)
        or last.sign != "*"
        or not isinstance(last.path, str)
        or len(firsts) > 1
    ):
        return None
    if firsts and not isinstance(firsts[0], str):
        return None
    if model.is_literal(end):
        refused.append(RefusedFilterError("a literal is neither a class nor a property", place_of(end)))
    if firsts:
        return Step(subject, last.path, end, CHAIN, str(firsts[0]))
    known = [each for each in (subject, end) if model.is_variable(each)]
    at = place_of(last.path)
    if not known:
        refused.append(RefusedFilterError("this path between two constants says nothing of an event", at))
    needing.extend((each, at, _UNBOUND_PATH) for each in known)
    return Step(subject, last.path, end, REPEATED)


def pattern_of(template: Template, words: Sequence[str]) -> model.Pattern | None:
    """Fill in a template; None if the terms make more than a pattern of it."""
    terms = terms_of(template.slots, words)
    edges = []
    for subject, property_, end, path, first in template.steps:
        if path == model.PLAIN:
            edges.append(model.Edge(terms[subject], terms[property_], terms[end]))
            continue
        if path == CHAIN:
            if terms[first] != model.TYPE or terms[property_] != model.SUBCLASS:
                return None
            path = model.ISA  # noqa: PLW2901
        elif path == REPEATED:
            if terms[property_] not in _REPEATED:
                return None
            path = _REPEATED[terms[property_]]  # noqa: PLW2901
        edges.append(model.Edge(terms[subject], path, terms[end], path))
    filters = tuple([substitute(each, terms) for each in template.filters])
    if template.searches and not all(map(is_searched, filters)):
        return None
    bound = {terms[slot] for slot in template.binding}
    for slot, index, reason in template.needing:
        if terms[slot] not in bound:
            raise RefusedFilterError(reason.format(_written(terms[slot])), index)
    if len(bound) > MAX_VARIABLES:
        raise too_many(len(bound))
    for constraint, node in template.paired:
        if terms[constraint] != terms[node]:
            raise RefusedFilterError(
                f"this constrains {terms[constraint]} and stands with {_written(terms[node])}",
                place_of(constraint),
            )
    for slot in template.languages:
        _check_language(terms[slot], place_of(slot))
    if template.selected == ():
        return model.Pattern(tuple(edges), filters)
    selected = _selected(template, terms, edges)
    return model.Pattern(tuple(edges), filters, template.form, selected, template.distinct)


def _check_language(text: Term, index: int) -> None:
    """Refuse a language in capitals: terms have theirs in lower case, so it would never be found."""
    language = model.parts(text).lexical
    if model.parts(text).datatype == model.STRING and language != language.lower():
        raise RefusedFilterError(f'languages are compared in lower case: write "{language.lower()}"', index)


def _selected(
    template: Template, terms: Mapping[Term, Term], edges: Sequence[model.Edge]
) -> tuple[Term, ...]:
    if template.selected is None:
        return tuple(each for each in model.Pattern(tuple(edges)).variables if not each.startswith("?:"))
    selected = [terms[slot] for slot in template.selected]
    for number, (slot, term) in enumerate(zip(template.selected, selected, strict=True)):
        if term in selected[:number]:
            raise RefusedFilterError(f"SELECT names {term} twice", place_of(slot))
    return tuple(selected)


def _written(variable: Term) -> str:
    """Write a variable as the filter does."""
    return f"_{variable[1:]}" if variable.startswith("?:") else variable
