"""Terms, edges and bindings in words: why an edge holds or not, and why a FILTER lets no binding pass."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from headgate.contents.kind import Results, table_lines
from headgate.core.text.alphabets import RUST
from headgate.rdf.index.bindings import image, ways
from headgate.rdf.language import model, values
from headgate.rdf.language.printing import print_expression
from headgate.rdf.language.searches import WORD, search_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from headgate.rdf.index.bindings import Bindings, Facts
    from headgate.rdf.language.model import Edge, Term

    Binding: TypeAlias = Mapping[Term, Term]
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from headgate.rdf.language.model import Expression, Options, Term
    from headgate.rdf.language.values import Value


_PREFIXES = {model.RDF: "rdf:", model.RDFS: "rdfs:", model.XSD: "xsd:"}
_BARE = {f"{model.XSD}integer", f"{model.XSD}decimal", f"{model.XSD}boolean"}
_LONGEST = 80
_MOST = 3


def shown(term: Term) -> str:
    """Write a term for people: numbers and truth values bare, known prefixes, giants cut.

    >>> shown('"2001"^^<http://www.w3.org/2001/XMLSchema#integer>'), shown('"2001"')
    ('2001', '"2001"')
    """
    if model.is_literal(term):
        lexical, datatype, _ = model.parts(term)
        if datatype in _BARE and values.value_of(term) is not None:
            term = lexical
        elif datatype not in {model.STRING, model.LANG_STRING}:
            end = term.rindex('"') + 1
            term = f"{term[:end]}^^{_short(datatype)}"
    elif model.is_iri(term):
        term = _short(term[1:-1])
    return term if len(term) <= _LONGEST else f"{term[: _LONGEST - 1]}…"


def listed(terms: Iterable[Term]) -> str:
    """List a few terms for people."""
    texts = [shown(each) for each in dict.fromkeys(terms)]
    more = len(texts) - _MOST
    return ", ".join(texts[:_MOST]) + (f" and {more} more" if more > 0 else "")


def kind(term: Term) -> str:
    """Say what a term is.

    >>> kind('"2001"'), kind('"x"^^<http://www.w3.org/2001/XMLSchema#integer>'), kind("<urn:x>")
    ('a string', 'not a valid xsd:integer', 'an IRI')
    """
    if not model.is_literal(term):
        return "a blank node" if model.is_blank(term) else "an IRI"
    match values.value_of(term):
        case values.Text(_, language):
            return f"a string in the language {language}" if language else "a string"
        case values.Truth():
            return "a truth value"
        case values.Number(name, _) | values.Moment(name, _, _):
            return f"{'an' if name == 'integer' else 'a'} {name}"
    datatype = model.parts(term).datatype
    return (
        f"{'not a valid' if datatype.startswith(model.XSD) else 'of the unknown datatype'} {_short(datatype)}"
    )


def _short(name: str) -> str:
    for full, prefix in _PREFIXES.items():
        if name.startswith(full):
            return prefix + name[len(full) :]
    return f"<{name}>"


def edge_note(edge: Edge, facts: Facts, binding: Binding, *, complete: bool) -> str:
    """Say why an edge does not hold under a binding, which may leave its variables open.

    If it could hold, its nodes stand for other nodes of the filter, or the search was not complete.
    """
    if edge.path in {model.PLAIN, model.ISA} and ways(facts, edge, binding):
        return "what would fit stands for another part of the filter" if complete else "not looked at"
    low, name, high = (image(term, binding) for term in edge[:3])
    if edge.path == model.PLAIN:
        return _no_triple(facts, low, name, high)
    if edge.path == model.ISA:
        return _no_type(facts, low, high)
    if low is None or high is None:
        return f"nothing stands for {edge.subject if low is None else edge.object}"
    relation = model.SUBPROPERTY if edge.path == model.BELOW_PROPERTY else model.SUBCLASS
    above = sorted(facts.above(low, relation) - {low})
    return f"above {shown(low)} there is {'only ' + listed(above) if above else 'nothing'}"


def held_note(edge: Edge, facts: Facts, binding: Binding) -> str:
    """Say through which type a node is of a class, if not directly."""
    low, high = image(edge.subject, binding), image(edge.object, binding)
    if edge.path != model.ISA or low is None or high is None or high in facts.types(low):
        return ""
    through = next(each for each in facts.types(low) if high in facts.above(each))
    return f"{shown(low)} is a {shown(through)}, which is below it"


def _no_triple(facts: Facts, low: Term | None, name: Term | None, high: Term | None) -> str:
    if name is None:
        if low is not None and high is not None:
            return f"no property leads from {shown(low)} to {shown(high)}"
        if low is not None or high is not None:
            one, role = (low, "subject") if low is not None else (high, "object")
            return f"{shown(one or '')} is the {role} of no triple"
        return "no triple has the same term in both places" if facts.statements else "the event is empty"
    able = facts.triples((None, name, None))
    if not able:
        return "the event has no triple with this property"
    if low is None and high is None:
        return "no triple with this property has the same term in both places"
    if low is not None:
        own = [each for _, _, each in facts.triples((low, name, None))]
        if not own:
            return f"{shown(low)} does not have this property; {listed(s for s, _, _ in able)} {_does(able)}"
        return f"{shown(low)} has it with {listed(own)}{_alike(high, own)}"
    others = [each for _, _, each in able]
    return f"the event has it with {listed(others)}{_alike(high, others)}"


def _does(able: list[tuple[Term, Term, Term]]) -> str:
    return "does" if len({s for s, _, _ in able}) == 1 else "do"


def _alike(wanted: Term | None, terms: Iterable[Term]) -> str:
    """Point at a literal that is equal to a constant, or looks so, and is another term."""
    if wanted is None or not model.is_literal(wanted):
        return ""
    for each in terms:
        if model.is_literal(each):
            same = model.parts(each).lexical == model.parts(wanted).lexical
            if same or values.compare("=", each, wanted) is True:
                return f"; {shown(each)} is {kind(each)}, and a constant matches by text, type and language"
    return ""


def _no_type(facts: Facts, node: Term | None, wanted: Term | None) -> str:
    if node is None:
        types = [each for _, _, each in facts.triples((None, model.TYPE, None))]
        start = "nothing in the event is one: it has"
    else:
        types = facts.types(node)
        start = f"{shown(node)} is of type"
    if not types:
        return "the event has no types" if node is None else f"{shown(node)} has no type"
    text = f"{start} {listed(types)}"
    if wanted is None or len(set(types)) > 1:
        return text
    if types[0] in facts.above(wanted):
        return f"{text}, which is above {shown(wanted)} and not below it"
    above = sorted(facts.above(types[0]) - {types[0]})
    return f"{text}, which is below {listed(above)}" if above else f"{text}, which is below nothing"


def bindings_shown(bindings: Bindings) -> Results:
    """Show bindings: for machines, and as a table for people."""
    if not bindings.rows:
        lines = ["no bindings"]
    elif not bindings.names:
        lines = ["bindings: the filter has no variables with names"]
    else:
        count = f"{len(bindings.rows):,}" if bindings.complete else f"the first {len(bindings.rows):,}"
        rows = [bindings.names, *(tuple(map(shown, row)) for row in bindings.rows)]
        lines = [f"bindings: {count}", *table_lines(rows)]
    return Results(bindings._asdict(), lines)


_EXACT = Context(prec=9000)  # two numbers of 4,000 digits, far apart
_LONGEST_NUMBER = 30
_VERBS = {"STRSTARTS": "start with", "STRENDS": "end with", "CONTAINS": "contain"}


def reason(expression: Expression, binding: Binding, options: Options) -> str:
    """Say why an expression is not true: of each of its parts that stand in the way, one thing."""
    blamed = list(_blame(expression, binding, options, True))
    notes = [_note(leaf, binding, options, wanted) for leaf, wanted in blamed]
    if len(blamed) == 1:
        return notes[0]
    return "; ".join(
        f"{print_expression(leaf)}: {note}" for (leaf, _), note in zip(blamed, notes, strict=True)
    )


def _blame(
    node: Expression, binding: Binding, options: Options, wanted: bool
) -> Iterator[tuple[Expression, bool]]:
    """Yield the comparisons and functions that would have to be true, or false, and are not."""
    if values.truth(values.evaluate(node, binding, options)) is wanted:
        return
    match node:
        case model.Not(part):
            yield from _blame(part, binding, options, not wanted)
        case model.And(inner) | model.Or(inner):
            for part in inner:
                yield from _blame(part, binding, options, wanted)
        case _:
            yield node, wanted


def _note(leaf: Expression, binding: Binding, options: Options, wanted: bool) -> str:
    match leaf:
        case model.Compare(sign, left, right):
            one, other = (values.as_term(values.evaluate(each, binding, options)) for each in (left, right))
            if one is None or other is None:
                return _error(left if one is None else right, binding, options)
            return _compared(sign, one, other, options, wanted)
        case model.Member(item, among):
            one = values.as_term(values.evaluate(item, binding, options))
            if one is None:
                return _error(item, binding, options)
            return _member(one, among, binding, options, wanted)
        case model.Call():
            return _called(leaf, binding, options, wanted)
    term = values.as_term(values.evaluate(leaf, binding, options))
    if term is None:
        return _error(leaf, binding, options)
    value = values.truth(term)
    counts = "has no truth value" if value is None else f"counts as {'true' if value else 'false'}"
    return f"{shown(term)} is {kind(term)} and {counts}"


def _error(node: Expression, binding: Binding, options: Options) -> str:
    """Say where an error comes from."""
    if isinstance(node, str):
        return f"nothing stands for {node}"
    if not isinstance(node, model.Call):
        return f"{print_expression(node)} is an error"
    terms = [values.as_term(values.evaluate(each, binding, options)) for each in node.arguments]
    for argument, each in zip(node.arguments, terms, strict=True):
        if each is None:
            return _error(argument, binding, options)
    return f"{node.name} of {' and '.join(kind(each) for each in terms if each is not None)} is an error"


def _compared(sign: str, one: Term, other: Term, options: Options, wanted: bool) -> str:
    held = values.compare(sign, one, other, options.coerce)
    if held is None:
        error = f"{shown(one)} is {kind(one)}: to compare it with {kind(other)} is an error"
        return error + ("" if options.coerce else _hint(sign, one, other, wanted))
    if wanted is False:
        return f"{shown(one)} {sign} {shown(other)} holds"
    left, right = values.value_of(one), values.value_of(other)
    if options.coerce:
        left, right = values.coerced(left, right), values.coerced(right, left)
    if values.compare("=", one, other, options.coerce):
        return f"{shown(one)} is equal to {shown(other)}"
    return _distance(sign, left, right) or f"it is {shown(one)}"


def _hint(sign: str, one: Term, other: Term, wanted: bool) -> str:
    """Say what `coerce` would make of two terms that cannot be compared."""
    held = values.compare(sign, one, other, True)
    if held is None:
        return ""
    value = values.value_of(one)
    text = value if isinstance(value, values.Text) else values.value_of(other)
    assert isinstance(text, values.Text)
    hold = "hold" if held is wanted else "not hold either"
    return f"; coerce=True would read it as {text.text.strip()[:_LONGEST_NUMBER]}, and it would {hold}"


def _distance(sign: str, left: Value | None, right: Value | None) -> str:
    """Say by how much a comparison of two different values fails; nothing where there is no scale."""
    word = {">": "short by", ">=": "short by", "<": "over by", "<=": "over by"}.get(sign, "off by")
    match left, right:
        case values.Number(), values.Number():
            gap = _gap(left, right)
            return f"{word} {gap}" if gap else "NaN is neither equal to a number nor in order with one"
        case values.Moment(), values.Moment():
            return f"{word} {_duration(abs(left.seconds - right.seconds))}"
        case values.Text(), values.Text() if sign == "=":
            if left.text.lower() == right.text.lower():
                return "it differs in case only"
            return "it differs in blanks around it only" if left.text.strip() == right.text.strip() else ""
        case values.Text(), values.Text():
            return "it comes before" if left.text < right.text else "it comes after"
    return ""


def _gap(one: values.Number, other: values.Number) -> str:
    if isinstance(one.value, float) or isinstance(other.value, float):
        gap = abs(values.to_double(one.value) - values.to_double(other.value))
        return "" if math.isnan(gap) else f"{gap:g}"
    exact = _EXACT.subtract(Decimal(one.value), Decimal(other.value)).copy_abs()
    text = f"{exact:f}"
    return text if len(text) <= _LONGEST_NUMBER else f"{exact:.6e}"


def _duration(seconds: Fraction) -> str:
    try:
        return str(dt.timedelta(microseconds=round(seconds * 10**6)))
    except OverflowError:
        return f"{seconds // 86400} days"


def _member(
    one: Term, among: tuple[Expression, ...], binding: Binding, options: Options, wanted: bool
) -> str:
    terms = [values.as_term(values.evaluate(each, binding, options)) for each in among]
    known = [each for each in terms if each is not None]
    answers = [values.compare("=", one, each, options.coerce) for each in known]
    if not wanted and True in answers:
        return f"{shown(one)} is equal to {shown(known[answers.index(True)])}"
    if not known:
        return "the list is empty" if not among else _error(among[0], binding, options)
    if None in answers:
        return _compared("=", one, known[answers.index(None)], options, wanted)
    return f"{shown(one)} is none of them"


def _called(leaf: model.Call, binding: Binding, options: Options, wanted: bool) -> str:
    if values.evaluate(leaf, binding, options) is None:
        return _error(leaf, binding, options)
    terms = [values.as_term(values.evaluate(each, binding, options)) for each in leaf.arguments]
    first = terms[0] or ""
    if leaf.name == "REGEX":
        return _searched(*[model.plain(each or '""') for each in terms], wanted=wanted)
    if leaf.name not in _VERBS:
        return f"{shown(first)} is {kind(first)}"
    verb = _VERBS[leaf.name]
    if not wanted:
        return f"{shown(first)} does {verb} {shown(terms[1] or '')}"
    return f"{shown(first)} does not {verb} {shown(terms[1] or '')}{_but_for_case(leaf.name, terms)}"


def _searched(text: str, pattern: str, flags: str = "", *, wanted: bool) -> str:
    """Say why a regular expression finds nothing, or that it does."""
    search = search_of(pattern, flags)
    assert search is not None, "the parser lets no other through"
    is_word = search.where == WORD
    if not wanted:
        return "the text has the word" if is_word else "the text fits"
    if not search.any_case:
        folded = search_of(pattern, "i")
        if folded is not None and folded.found_in(text):
            return f"the text {'has the word' if is_word else 'fits'} but for case"
    if not is_word:
        return f"the text does not fit{' in any case' if search.any_case else ''}"
    word = RUST.fold(search.text)
    longer = next((each for each in RUST.words(text) if word in each and word != each), None)
    return f"the text has {longer!r}, and not the word alone" if longer else "the text does not have the word"


def _but_for_case(name: str, terms: list[Term | None]) -> str:
    known = [values.value_of(each or "") for each in terms]
    lower: list[Term | None] = [
        model.literal(each.text.lower()) for each in known if isinstance(each, values.Text)
    ]
    return ", but for case" if values.call(name, lower) else ""
