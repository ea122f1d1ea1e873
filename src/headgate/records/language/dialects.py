"""The dialects of filters: SQL, and `labels`, which is translated to it."""

from __future__ import annotations

import re

from sqlglot import exp

from headgate.core.subscription import LABELS, SQL, check_dialect
from headgate.errors import FilterError, SubscriptionError
from headgate.records.language.model import (
    NUMBERS,
    And,
    ArrayContains,
    ArraysOverlap,
    Attribute,
    Constant,
    Expression,
    ForAll,
    IsNull,
    Literal,
    LiteralType,
    Or,
)
from headgate.records.language.parse import Translator, parse_tree
from headgate.records.language.printing import print_filter, print_literal
from headgate.records.language.refusal import MAX_CHARACTERS, refusal

_LABELS = {LiteralType.STRING, *NUMBERS}
_CALLS = "subset(attribute, 'label', …), superset(attribute, 'label', …) or intersects(attribute, 'label', …)"


def labels_to_sql(text: str) -> str:
    """Translate a call to the filter that holds for the same events; refuse anything else, with its place.

    >>> labels_to_sql("subset(tags, 'new', 'cheap')")
    "array_contains(tags, 'new') AND array_contains(tags, 'cheap')"
    >>> labels_to_sql("superset(tags, 'new')")
    "tags IS NULL OR forall(tags, x -> x IS NULL OR x IN ('new'))"
    >>> labels_to_sql("tags = 'new'")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: the dialect labels takes one call: subset(attribute, 'label', …), \
superset(attribute, 'label', …) or intersects(attribute, 'label', …), at character 1: ⟪tags = 'new'
    """
    tree = parse_tree(text) if text.strip() else None
    if tree is None:
        raise FilterError(f"the filter is empty: write {_CALLS}", text, None)
    name = str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""
    if name not in {"subset", "superset", "intersects"}:
        # Nodes such as NOT and TRUE know no place, and all of the text is wrong.
        start = len(text) - len(text.lstrip())
        raise FilterError(f"the dialect labels takes one call: {_CALLS}", text, start)
    if not tree.expressions:
        raise refusal(f"{name} takes an attribute and labels: {name}(tags, 'new', 'cheap')", text, tree)
    translator, listed = Translator(text), tree.expressions[1:]
    attribute = translator.attribute(tree.expressions[0])
    for node in listed:
        label = translator.literal(node)
        if label.type not in _LABELS:
            raise refusal(f"a label is a string or a number, not {print_literal(label)}", text, node)
    labels = translator.literals(listed, tree)
    sql = print_filter(_expression(name, attribute, tuple(dict.fromkeys(labels))))
    if len(sql) > MAX_CHARACTERS:
        reason = f"as SQL the filter has {len(sql):,} characters and at most {MAX_CHARACTERS:,} are taken"
        raise FilterError(f"{reason}; write fewer labels", text, None)
    return sql


def _expression(name: str, attribute: Attribute, labels: tuple[Literal, ...]) -> Expression:
    match name:
        case "subset":
            held = tuple(ArrayContains(attribute, label) for label in labels)
            return And(held) if len(held) > 1 else held[0] if held else Constant(value=True)
        case "superset":
            return Or((IsNull(attribute), ForAll(attribute, labels, nulls=True)))
    return ArraysOverlap(attribute, labels) if labels else Constant(value=False)


def to_sql(text: str, dialect: str) -> str:
    """Return the filter of the SQL dialect that means the same.

    >>> to_sql("intersects(tags, 'news')", "labels"), to_sql("age > 30", "sql")
    ("arrays_overlap(tags, array('news'))", 'age > 30')
    """
    check_dialect(dialect)
    if dialect not in (SQL, LABELS):
        raise SubscriptionError(
            f"dialect {dialect!r} is for RDF events: filters of records are {SQL!r} or {LABELS!r}"
        )
    if dialect == SQL and _SPARQL.match(text):
        raise FilterError("this is SPARQL: give it the dialect 'sparql'", text, 0)
    return labels_to_sql(text) if dialect == LABELS else text


_SPARQL = re.compile(r"\s*(?:ASK\s*(?:WHERE\s*)?\{|PREFIX\s+\S*:\s*<|SELECT\s[^{]*\{)", re.IGNORECASE)
