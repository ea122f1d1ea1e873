"""What XPath has and filters have not, and what to write instead."""

from __future__ import annotations

_ABSENT = "a filter says what must be there, not what must be absent"
POSITION = "tell nodes apart by what they contain"
_COUNT = "a path in brackets asks for at least one node"
_ARITHMETIC = "work the number out, and compare a path with it"
_EACH = "subscribe to each alternative"
_UPWARDS = "paths lead downwards; put the condition on the upper step, as in //a[b]/c"
_SIBLING = "the order of siblings is no part of a filter; ask for both below their parent, as in //a[b]/c"
_TEXTS = "use contains(a, 'x') or starts-with(a, 'x')"
_PLAIN = "compare the path itself, as in a = 'x'"
_NAMES = "write the name as a step, or *:name for any namespace"
_ONE = "a filter looks at one document only"
_NODES = "steps are names, *, @name and text()"
_TYPES = "write numbers without quotes and texts in quotes"
_SETS = "write one path, or " + _EACH
_QUERY = "a filter is a path with conditions and marks"

AXES = {
    "self": "give the step its name, or compare . in brackets",
    **dict.fromkeys(("parent", "ancestor", "ancestor-or-self"), _UPWARDS),
    **dict.fromkeys(("following-sibling", "preceding-sibling", "following", "preceding"), _SIBLING),
    "descendant-or-self": "write // before the name",
    "namespace": "write Q{namespace}name",
}
"""The axes that filters have not."""

FUNCTIONS = {
    **dict.fromkeys(("not", "empty"), f"{_ABSENT}; for values there is !="),
    **dict.fromkeys(("position", "last", "subsequence", "head", "tail", "reverse"), POSITION),
    **dict.fromkeys(("count", "distinct-values", "exactly-one", "one-or-more", "zero-or-one"), _COUNT),
    **dict.fromkeys(("exists", "boolean"), "write the path alone, as in [a]"),
    **dict.fromkeys(("true", "false"), "compare with the text 'true' or 'false', in quotes"),
    **dict.fromkeys(("sum", "avg", "min", "max", "floor", "ceiling", "round", "abs"), _ARITHMETIC),
    **dict.fromkeys(("string", "number", "data", "normalize-space", "normalize-unicode"), _PLAIN),
    **dict.fromkeys(
        (
            *("ends-with", "matches", "replace", "tokenize", "substring", "substring-before"),
            *("substring-after", "string-length", "translate", "concat", "string-join", "compare"),
            *("upper-case", "lower-case", "contains-token"),
        ),
        _TEXTS,
    ),
    **dict.fromkeys(("name", "local-name", "node-name"), _NAMES),
    "namespace-uri": "write Q{namespace}name",
    "lang": "write [@xml:lang = 'en'], which looks at the node itself only",
    "id": "write [@id = 'x']",
    **dict.fromkeys(("doc", "document", "collection", "unparsed-text", "key", "current", "root"), _ONE),
    "node": _NODES,
    **dict.fromkeys(("comment", "processing-instruction"), f"documents are read without them; {_NODES}"),
    **dict.fromkeys(("element", "attribute", "document-node", "item"), _NODES),
    "text": "text() has nothing between its parentheses",
    **dict.fromkeys(("current-date", "current-dateTime", "current-time"), "write the value"),
}
"""Functions and node tests that filters have not; others are refused by a line for all."""

OPERATORS = {
    "or": f"{_EACH}, as one filter asks for all of it",
    **dict.fromkeys(("div", "mod", "idiv", "*"), _ARITHMETIC),
    "eq": "write =",
    "ne": "write !=",
    "lt": "write <",
    "le": "write <=",
    "gt": "write >",
    "ge": "write >=",
    **dict.fromkeys(("union", "intersect", "except"), _SETS),
    "is": "nodes are not compared, only their values",
    "to": "write two comparisons, as in [a >= 1 and a <= 5]",
    **dict.fromkeys(("instance", "cast", "castable", "treat"), _TYPES),
    **dict.fromkeys(
        ("return", "satisfies", "in", "then", "else", "if", "for", "some", "every", "let"), _QUERY
    ),
    "AND": "write and, in lower case",
    "OR": f"{_EACH}, as one filter asks for all of it",
}
"""Words between two operands."""

SIGNS = {
    "|": f"| is not supported: {_SETS}",
    "||": f"|| is not supported: {_EACH}",
    "&&": "&& is no operator of XPath: write and",
    "&": "& is no part of the filter language: write and, and < in place of &lt;",
    "==": "equality is written with one =",
    "<>": "unequal is written !=",
    "!": f"! is not supported: {_ABSENT}; for values there is !=",
    "+": f"+ is not supported: {_ARITHMETIC}",
    "(:": "comments are not supported: leave them out",
    "::": "a name of an axis stands before ::",
    "@": "a name stands behind @, or *",
    "#": "# is no part of the filter language: comments are not supported",
    "?": "? is not supported: filters have no optional parts",
    "`": "a text stands in quotes ' or \"",
    **dict.fromkeys("\u201c\u201d\u2018\u2019", "a text stands in plain quotes ' or \""),
    "}": "a brace is closed that was not opened",
    ":": "a colon stands within a name only, as in *:name",
    "\u00a0": "a no-break space stands here: write a plain one",
}
"""Signs that are no words of filters."""
