"""Templates filled in: the pattern of a text, from the template of its shape and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.language.limits import MAX_VARIABLES
from headgate.rdf.language.model import (
    BELOW,
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Edge,
    Pattern,
)
from headgate.rdf.language.names import Names, Unreadable, tagged, typed
from headgate.rdf.language.refusal import BAD_PATH, Refused
from headgate.rdf.language.shapes import CHAIN, FRESH, REPEATED
from headgate.rdf.language.terms import parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Term
    from headgate.rdf.language.shapes import Step, Template

_REPEATED = {SUBCLASS: BELOW, SUBPROPERTY: BELOW_PROPERTY}
_MAX_PROLOGUES = 32
_prologues: dict[tuple[str, ...], Names] = {}


def pattern_of(template: Template, words: Sequence[str]) -> Pattern:
    """Fill in the template of a filter; raises `Refused` for what the words' values forbid."""
    terms = terms_of(template, words)
    edges = tuple(
        [
            Edge(terms[step[0]], terms[step[1]], terms[step[2]])
            if step[3] == PLAIN
            else _on_path(step, terms, template)
            for step in template.steps
        ]
    )
    bound = {terms[slot] for slot in template.binding}
    for slot, number, reason in template.needing:
        if terms[slot] not in bound:
            raise Refused(reason.format(_written(terms[slot])), number)
    if len(bound) > MAX_VARIABLES:
        raise Refused(f"the filter has {len(bound)} variables and at most {MAX_VARIABLES} are taken", 0)
    for constraint, node in template.paired:
        if terms[constraint] != terms[node]:
            raise Refused(
                f"this constrains {terms[constraint]} and stands with {_written(terms[node])}",
                template.places[constraint],
            )
    for slot in template.languages:
        _check_language(terms[slot], template.places[slot])
    filters = tuple([make(terms) for make in template.filters])
    if template.selected == ():
        return Pattern(edges, filters)
    return Pattern(edges, filters, template.form, _selected(template, terms, edges), template.distinct)


def terms_of(template: Template, words: Sequence[str]) -> list[Term]:
    """List the terms of a text, by slot."""
    key = tuple(words[: template.prologue])
    names = _prologues.get(key)
    if names is None:
        names = _declared(template, words)
        if len(_prologues) >= _MAX_PROLOGUES:
            _prologues.clear()
        _prologues[key] = names
    try:
        terms = [names[words[place]] for place in template.places]
    except Unreadable:
        raise _first(names, template, words) from None
    for text, language, datatype in template.joins:
        try:
            joined = (
                tagged(terms[text], words[language]) if datatype < 0 else typed(terms[text], terms[datatype])
            )
        except Unreadable as error:
            raise Refused(str(error), template.places[text]) from None
        terms.append(joined)
    if template.extra:
        _add_extra(template, terms)
    return terms


def _declared(template: Template, words: Sequence[str]) -> Names:
    names = Names()
    for prefix, iri in template.declarations:
        try:
            names.declare(words[prefix] if prefix >= 0 else None, words[iri])
        except Unreadable as error:
            raise Refused(str(error), iri) from None
    return names


def _first(names: Names, template: Template, words: Sequence[str]) -> Refused:
    """Find the first word that stands for no term."""
    for place in template.places:
        try:
            names[words[place]]
        except Unreadable as error:
            return Refused(str(error), place)
    raise AssertionError("one of the words was unreadable just now")


def _add_extra(template: Template, terms: list[Term]) -> None:
    """Append the terms that no word writes; blank nodes get the first names that the text does not use."""
    used = set(terms)
    number = 0
    for term in template.extra:
        if term != FRESH:
            terms.append(term)
            continue
        while f"?:b{number}" in used:
            number += 1
        terms.append(f"?:b{number}")
        number += 1


def _on_path(step: Step, terms: Sequence[Term], template: Template) -> Edge:
    subject, last, end, path, first = step
    if path == CHAIN:
        if terms[first] != TYPE or terms[last] != SUBCLASS:
            raise Refused(BAD_PATH, template.places[first])
        path = ISA
    elif path == REPEATED:
        if terms[last] not in _REPEATED:
            raise Refused(BAD_PATH, template.places[last])
        path = _REPEATED[terms[last]]
    return Edge(terms[subject], path, terms[end], path)


def _check_language(text: Term, number: int) -> None:
    """Refuse a language in capitals: terms have theirs in lower case, so it would never be found."""
    language = parts(text).lexical
    if language != language.lower():
        raise Refused(f'languages are compared in lower case: write "{language.lower()}"', number)


def _selected(template: Template, terms: Sequence[Term], edges: tuple[Edge, ...]) -> tuple[Term, ...]:
    if template.selected is None:
        return tuple(each for each in Pattern(edges).variables if not each.startswith("?:"))
    found = [terms[slot] for slot in template.selected]
    for place, term in enumerate(found):
        if term in found[:place]:
            raise Refused(f"SELECT names {term} twice", template.places[template.selected[place]])
    return tuple(found)


def _written(variable: Term) -> str:
    """Write a variable as the filter does."""
    return f"_{variable[1:]}" if variable.startswith("?:") else variable
