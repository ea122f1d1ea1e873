"""The dialect `labels`: one call about the labels that an attribute holds, translated to SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.records.expressions.model import Name
from headgate.records.expressions.parse import Parser
from headgate.records.language import model
from headgate.records.language.conditions import literal_of
from headgate.records.language.lexing import END
from headgate.records.language.limits import checked
from headgate.records.language.literals import fits_one_decimal
from headgate.records.language.printing import print_filter, print_literal

if TYPE_CHECKING:
    from headgate.records.expressions.model import Node

_LABELS = {model.LiteralType.STRING, *model.NUMBERS}
_NAMES = {"subset", "superset", "intersects"}
_CALLS = "subset(attribute, 'label', …), superset(attribute, 'label', …) or intersects(attribute, 'label', …)"
_ONE_CALL = f"the dialect labels takes one call: {_CALLS}"


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
    parser = Parser(text) if text.strip() else None
    if parser is None or parser.keys[0] == END:
        raise FilterError(f"the filter is empty: write {_CALLS}", text, None)
    name = parser.keys[0]
    if name not in _NAMES or parser.keys[1] != "(":
        parser.refuse(_ONE_CALL, 0)
    parser.at = 2
    if parser.keys[2] == ")":
        parser.refuse(f"{name} takes an attribute and labels: {name}(tags, 'new', 'cheap')", 0)
    first, *listed = parser.items(functions=False)
    if parser.keys[parser.at] != END:
        parser.refuse(_ONE_CALL, 0)
    if not isinstance(first, Name):
        raise FilterError("an attribute is expected here", text, parser.place(first))
    attribute = model.Attribute(first.path, first.spelled)
    labels = [_label(parser, node) for node in listed]
    kinds = dict.fromkeys(label.type.value for label in labels)
    if model.common_type(tuple(labels)) is None:
        parser.refuse(f"the list mixes {' and '.join(kinds)}; write all of them in one type", 0)
    if not fits_one_decimal(labels):
        parser.refuse("no decimal of 38 digits holds all numbers of the list; write doubles", 0)
    sql = print_filter(_expression(name, attribute, tuple(dict.fromkeys(labels))))
    return checked(sql, text, "; write fewer labels")


def _label(parser: Parser, node: Node) -> model.Literal:
    label = literal_of(node)
    if label is None:
        what = ", not an attribute" if isinstance(node, Name) else ""
        raise FilterError(f"a literal is expected here{what}", parser.text, parser.place(node))
    if label.type not in _LABELS:
        reason = f"a label is a string or a number, not {print_literal(label)}"
        raise FilterError(reason, parser.text, parser.place(node))
    return label


def _expression(name: str, attribute: model.Attribute, labels: tuple[model.Literal, ...]) -> model.Expression:
    match name:
        case "subset":
            held = tuple(model.ArrayContains(attribute, label) for label in labels)
            return model.And(held) if len(held) > 1 else held[0] if held else model.Constant(value=True)
        case "superset":
            return model.Or((model.IsNull(attribute), model.ForAll(attribute, labels, nulls=True)))
    return model.ArraysOverlap(attribute, labels) if labels else model.Constant(value=False)
