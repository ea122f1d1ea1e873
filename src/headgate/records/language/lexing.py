r"""The text of a filter cut into tokens, as Spark cuts it.

    user.age >= 18 AND topic = 'it\'s'      texts   user . age >= 18 AND topic = 'it\'s'
                                            keys    user . age >= 0  and topic = '

What a parser asks of a token is its *key*: a word in lower case, a sign as it is, and one sign for all
numbers, for all texts, and for all names in backticks. One regular expression cuts. Where tokens begin is
found again when something is refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from headgate.errors import FilterError

NUMBER, STRING, RAW, QUOTED, END = "0", "'", "r'", "`", ""
"""The keys of numbers, texts, texts without escapes, names in backticks, and of the end."""
STRINGS = frozenset({STRING, RAW})

_BLANKS = " \t\n\r\x0b\x0c\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000"
_QUOTES = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`(?:[^`]|``)*+`|(?<!\w)[rR](?:'[^']*+'|"[^"]*+")"""
_OPEN_QUOTE = r"""(?:(?<!\w)[rR])?['"`].*"""
_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?:[lLsSyYdDfF]|[bB][dD])?"
_TOKEN = re.compile(
    rf"[{_BLANKS}]*+({_QUOTES}|{_OPEN_QUOTE}|[^\W0-9]\w*+|{_NUMBER}(?![\w.])|[0-9]++\.[\w.]*+|\.[0-9]++\.[\w.]*+"
    r"|\w++|<=>|[<>!=]=|<>|=[<>]|->|\|\||&&|::|.|\Z)",
    re.DOTALL,
)
_COMMENT = re.compile(rf"{_QUOTES}|{_OPEN_QUOTE}|--[^\r\n]*+|/\*\+?", re.DOTALL)
# A hint does not open a comment, not even inside one.
_MARK = re.compile(r"/\*(?!\+)|\*/")
_WHOLE_QUOTE = re.compile(_QUOTES, re.DOTALL)
_WHOLE_NUMBER = re.compile(_NUMBER)
_OPEN = "a quote or a comment is still open at the end; write \\' for a quote inside a text"
_USUAL = {
    form: word
    for word in re.findall(
        r"\w+",
        """and or not in like ilike rlike between is null true false escape case when then else end as cast
        date timestamp distinct from exists array""",
    )
    for form in (word, word.upper(), word.capitalize())
} | {sign: sign for sign in ("=", "(", ")", ",", ".", "<", ">", "<=", ">=", "!=", "<>", "==", "-", "+", "*")}
"""The keys of tokens that most texts have."""

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """and any array as between case cross distinct else escape except false for from having ilike in
        inner intersect interval is join lateral like minus not null on or outer regexp rlike select then true
        union using values when where with""",
    )
)
"""Words that are no names without backticks."""
BARE_FUNCTIONS = {"current_date", "current_timestamp", "current_user", "session_user", "localtimestamp"}
"""What Spark takes for functions without parentheses."""


class Tokens(NamedTuple):
    """The tokens of a text, as written, and their keys; the last two are the end."""

    texts: list[str]
    keys: list[str]


def cut(text: str) -> Tokens:
    """Cut a text into tokens; refuse an open quote or comment, and comments that Spark reads otherwise.

    >>> cut("Age>=18L -- years")
    Tokens(texts=['Age', '>=', '18L', '', ''], keys=['age', '>=', '0', '', ''])
    """
    if "--" in text or "/*" in text:
        text = _without_comments(text)
    texts: list[str] = _TOKEN.findall(text)
    # Behind blanks the end is found twice.
    if texts[-2:-1] != [END]:
        texts.append(END)
    last = texts[-3] if len(texts) > 2 else END
    if last and last.lstrip("rR")[:1] in {"'", '"', "`"} and not _WHOLE_QUOTE.fullmatch(last):
        raise FilterError(_OPEN, text, len(text))
    usual = _USUAL.get
    return Tokens(texts, [usual(each) or _key(each) for each in texts])


def starts(text: str) -> list[int]:
    """Say where the tokens of a text begin."""
    if "--" in text or "/*" in text:
        text = _without_comments(text)
    return [match_.start(1) for match_ in _TOKEN.finditer(text)]


def is_word(key: str) -> bool:
    """Tell whether a key is that of a word."""
    return (key[:1].isalnum() or key[:1] == "_") and key not in {NUMBER, RAW}


def _key(text: str) -> str:
    first = text[:1]
    if first.isalpha() or first == "_":
        if first in "rR" and text[1:2] in {"'", '"'}:
            return RAW
        # Some letters beyond ASCII have lower cases within it.
        return text.lower() if text.isascii() else text
    if "0" <= first <= "9" or (first == "." and len(text) > 1):
        return NUMBER if text.isdigit() or "." in text or _WHOLE_NUMBER.fullmatch(text) else text.lower()
    return STRING if first in {"'", '"'} else text if first != "`" else QUOTED


def _without_comments(text: str) -> str:
    """Put blanks in the place of comments."""
    parts = []
    done = at = 0
    while match_ := _COMMENT.search(text, at):
        start, at = match_.span()
        if match_[0][:2] not in {"--", "/*"}:
            continue
        if match_[0] == "/*+":
            raise FilterError("a hint is not part of the filter language: write /* … */", text, start)
        if match_[0] == "/*":
            at = _after_comment(text, start)
        elif text[at - 1] == "\\" and text[at : at + 1] == "\n":
            reason = "a comment ends with a backslash, and Spark would go on with it in the next line"
            raise FilterError(reason, text, at - 1)
        parts += [text[done:start], " " * (at - start)]
        done = at
    return "".join((*parts, text[done:]))


def _after_comment(text: str, start: int) -> int:
    """Find the end of a bracketed comment, with those inside it."""
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise FilterError(_OPEN, text, len(text))
