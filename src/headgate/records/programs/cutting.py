"""Filters with expressions in them, cut into clauses and what joins them, token by token.

    upper(a) = 'X' AND (exists(b, x -> x > 1 AND x < 9) OR NOT c + 1 BETWEEN 2 AND 3)

    clauses   upper(a) = 'X'   exists(b, x -> x > 1 AND x < 9)   c + 1 BETWEEN 2 AND 3

The forms of `shapes` are known clauses; here a clause is whatever stands between AND, OR, NOT, parentheses
and the ends of the text. Parentheses behind a word belong to its clause, and so do those within it; AND
behind BETWEEN and all between CASE and END does, too. Where a parenthesis turns out to be an operand, as in
`(a + b) * 2 > 5`, the text is not cut, and the parser reads it.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<blank>[ \t\n\r]+)|(?P<string>'[^'\\\ud800-\udfff]*+')"
    r"|(?P<quoted>`(?:[\x01-\x03]?[ -_a-~]{1,64}|\x04)`)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?![\w.]))|(?P<word>[a-z_]\w*)|(?P<open>\()|(?P<close>\))"
    r"|(?P<sign><=>|->|[<>!=]=|<>|\|\||[-+*/%,.<>=\[\]])|(?P<bang>!)",
    re.ASCII | re.IGNORECASE,
)
_LONGEST = 4_096


def cut_clauses(text: str) -> list[str] | None:
    r"""Cut a text: joints at the even places, clauses at the odd ones; None if that is for the parser to do.

    >>> cut_clauses("upper(a) = 'X' AND (b BETWEEN 1 AND 2 OR NOT c)")
    ['', "upper(a) = 'X'", ' AND (', 'b BETWEEN 1 AND 2', ' OR NOT ', 'c', ')']
    >>> cut_clauses("(a + b) * 2 > 5"), cut_clauses("a = \"x\"")
    (None, None)
    """
    if len(text) > _LONGEST or "--" in text or "/*" in text:
        return None
    parts: list[str] = []
    # Where the last joint begins, and the clause that is being read: from its first token to its last.
    joined, begin, end = 0, -1, -1
    inside = cases = betweens = at = 0
    # Whether a parenthesis of the joints has ended, so that no clause may follow.
    done = False
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        start, at = at, token.end()
        kind = token.lastgroup
        if kind == "blank":
            continue
        word = token[0].lower() if kind == "word" else ""
        if inside:
            inside += (kind == "open") - (kind == "close")
            end = at
            continue
        if kind == "open":
            if begin >= 0:
                inside, end = 1, at
            elif done:
                return None
            continue
        if cases or (begin >= 0 and word == "case"):
            cases += (word == "case") - (word == "end")
            end = at
            continue
        if word == "and" and betweens and begin >= 0:
            betweens -= 1
            end = at
            continue
        if kind == "close" or word in {"and", "or"}:
            if begin >= 0:
                if betweens:
                    return None
                parts += (text[joined:begin], text[begin:end])
                joined, begin = end, -1
            elif not done:
                return None
            done = kind == "close"
            continue
        if done:
            return None
        if kind == "bang" or (word == "not" and begin < 0):
            if begin >= 0:
                return None
            continue
        if begin < 0:
            begin = start
            cases = int(word == "case")
        betweens += word == "between"
        end = at
    if inside or cases or betweens or (begin < 0 and not done):
        return None
    if begin >= 0:
        parts += (text[joined:begin], text[begin:end])
        joined = end
    return [*parts, text[joined:]]
