"""The dialect `labels`: one call about the labels that an attribute holds, translated to SQL."""

from __future__ import annotations

from sqlglot import exp

from headgate.errors import FilterError
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
