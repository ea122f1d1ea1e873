r"""Regular expressions of Java for RE2, which takes time that grows with the text and no more.

What both know and mean alike is taken as it is; what means something else in Java is written out (`.`, `\s`,
`$` at the end, letters in any case); what RE2 has not, or what depends on the version of Java, is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from headgate.core.text.alphabets import one_word, words

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PATTERN = 1_000
_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": r" \t\n\x0b\f\r",
}
_SIGNS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_COUNT = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}")
_FLAGS = re.compile(r"\(\?([ismuU]+)\)")
_MAX_COUNT = 1_000


class RefusedPatternError(Exception):
    """A regular expression that is not taken."""


class _Translation:
    """Reads a pattern of Java from left to right and writes that of RE2."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.fold = self.dots = False
        self.depth = 0

    def whole(self) -> str:
        """Translate all of it."""
        flags = _FLAGS.match(self.pattern)
        if flags:
            letters = set(flags[1])
            if letters & set("muU"):
                self.refuse("of flags only (?i) and (?s) are taken")
            self.fold, self.dots = "i" in letters, "s" in letters
            self.at = flags.end()
        translated = self.alternatives()
        if self.at < len(self.pattern):
            self.refuse("a parenthesis was never opened")
        return translated

    def refuse(self, reason: str) -> None:
        """Refuse the pattern."""
        raise RefusedPatternError(f"{reason}, at character {self.at + 1} of the pattern")

    def alternatives(self) -> str:
        """Translate parts with | between them."""
        parts = [self.sequence()]
        while self.pattern[self.at : self.at + 1] == "|":
            self.at += 1
            parts.append(self.sequence())
        return "|".join(parts)

    def sequence(self) -> str:
        """Translate one part after another."""
        parts = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            if self.pattern[self.at] == "$":
                self.at += 1
                if self.depth or self.pattern[self.at : self.at + 1] not in {"", "|"}:
                    self.refuse("$ stands at the end only")
                # In Java it also stands before the end of the last line.
                parts.append(rf"(?:\r\n|[{_ENDS}])?\z")
            elif self.pattern[self.at] == "^":
                self.at += 1
                parts.append(r"\A")
            else:
                parts.append(self.atom() + self.quantifier())
        return "".join(parts)

    def quantifier(self) -> str:
        """Translate how often something may come."""
        rest = self.pattern[self.at : self.at + 1]
        if rest and rest in "*+?":
            sign = rest
            self.at += 1
        elif rest == "{":
            count = _COUNT.match(self.pattern, self.at)
            if not count or max(int(count[1]), int(count[3] or 0)) > _MAX_COUNT:
                self.refuse(f"{{ takes numbers up to {_MAX_COUNT:,}")
            assert count is not None
            sign = count[0]
            self.at = count.end()
        else:
            return ""
        after = self.pattern[self.at : self.at + 1]
        if after == "+":
            self.refuse("possessive quantifiers are not taken")
        if after == "?":
            self.at += 1
            sign += "?"
        if self.pattern[self.at : self.at + 1] in {"*", "+", "?", "{"}:
            self.refuse("a quantifier follows another")
        return sign

    def atom(self) -> str:
        """Translate one character, class or group."""
        letter = self.pattern[self.at]
        self.at += 1
        if letter == "(":
            return self.group()
        if letter == "[":
            return self.set()
        if letter == ".":
            return r"(?s:.)" if self.dots else f"[^{_ENDS}]"
        if letter in "*+?{":
            self.refuse("nothing stands before this quantifier")
        if letter == "\\":
            return self.escape()
        return self.letter(letter)

    def group(self) -> str:
        """Translate parentheses."""
        if self.pattern[self.at : self.at + 1] == "?":
            if self.pattern[self.at + 1 : self.at + 2] != ":":
                self.refuse("of groups with ? only (?: is taken: RE2 looks neither ahead nor behind")
            self.at += 2
        self.depth += 1
        if self.depth > 50:
            self.refuse("groups nest deeper than 50")
        translated = self.alternatives()
        self.depth -= 1
        if self.pattern[self.at : self.at + 1] != ")":
            self.refuse("a parenthesis is still open")
        self.at += 1
        return f"(?:{translated})"

    def escape(self) -> str:
        """Translate what follows a backslash outside of a set."""
        letter = self.pattern[self.at : self.at + 1]
        if letter.lower() in _CLASSES and letter:
            self.at += 1
            return f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]"
        return self.letter(self.sign())

    def sign(self) -> str:
        """Read the one character that an escape means."""
        letter = self.pattern[self.at : self.at + 1]
        self.at += 1
        if letter in {"x", "u"}:
            size = 2 if letter == "x" else 4
            digits = self.pattern[self.at : self.at + size]
            if not re.fullmatch(rf"[0-9a-fA-F]{{{size}}}", digits) or 0xD800 <= int(digits, 16) < 0xE000:
                self.refuse(f"\\{letter} takes {size} digits")
            self.at += size
            return chr(int(digits, 16))
        if letter in _SIGNS:
            return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}[letter]
        if letter in {"b", "B"}:
            self.refuse(r"\b is taken around one whole word only: '(?i)\\bword\\b'")
        if not letter or letter.isalnum():
            self.refuse(f"\\{letter} is not taken")
        return letter

    def letter(self, letter: str) -> str:
        """Write one character; Java folds those of ASCII only."""
        if self.fold and letter.isascii() and letter.isalpha():
            return f"[{letter.lower()}{letter.upper()}]"
        return _written(letter)

    def set(self) -> str:
        """Translate [ … ]."""
        negated = self.pattern[self.at : self.at + 1] == "^"
        self.at += negated
        members: list[str] = []
        while self.pattern[self.at : self.at + 1] != "]" or not members:
            if self.at >= len(self.pattern):
                self.refuse("a bracket is still open")
            if self.pattern[self.at] in "[]&":
                self.refuse("within brackets, write a backslash before [, ] and &")
            members.append(self.member())
        self.at += 1
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def member(self) -> str:
        """Translate a character, a range or a class within a set."""
        first = self.pattern[self.at]
        if first == "\\" and self.pattern[self.at + 1 : self.at + 2] in _CLASSES:
            self.at += 2
            return _CLASSES[self.pattern[self.at - 1]]
        low = self.character()
        if self.pattern[self.at : self.at + 1] != "-" or self.pattern[self.at + 1 : self.at + 2] in {"]", ""}:
            high = low
        else:
            self.at += 1
            high = self.character()
            if high < low:
                self.refuse("a range goes backwards")
        written = _written(low) if low == high else f"{_written(low)}-{_written(high)}"
        return written + self.folded(low, high)

    def folded(self, low: str, high: str) -> str:
        """Write the letters of ASCII in a range in their other case."""
        if not self.fold:
            return ""
        inside = (chr(code) for code in range(max(ord(low), 65), min(ord(high), 122) + 1))
        return "".join(each.swapcase() for each in inside if each.isalpha())

    def character(self) -> str:
        """Read one character within a set."""
        letter = self.pattern[self.at]
        self.at += 1
        return self.sign() if letter == "\\" else letter


def _written(letter: str) -> str:
    return letter if letter.isalnum() and letter.isascii() else f"\\x{{{ord(letter):x}}}"


def problem(pattern: str) -> str:
    """Say why a regular expression is refused, or nothing.

    >>> problem("a+b"), problem("(?=a)")[:38]
    ('', 'of groups with ? only (?: is taken: RE')
    """
    if len(pattern) > MAX_PATTERN:
        return f"a regular expression has at most {MAX_PATTERN:,} characters"
    if one_word(pattern) is not None:
        return ""
    if "\b" in pattern:
        return "\\b in a string is a backspace, and \\\\b a word's edge"
    try:
        _compiled(pattern)
    except RefusedPatternError as error:
        return str(error)
    return ""


def finder(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a text has a place that fits.

    >>> finder("^[a-c]+$")("abba"), finder("(?i)NEWS")("no news")
    (True, True)
    """
    word = one_word(pattern)
    if word is not None:
        return lambda text: word in words(text)
    search = _compiled(pattern).search
    return lambda text: search(text) is not None


@lru_cache(maxsize=4_096)
def _compiled(pattern: str) -> re.Pattern[str]:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        compiled: re.Pattern[str] = re2.compile(_Translation(pattern).whole(), options)
    except re2.error:
        raise RefusedPatternError("RE2 does not take this regular expression") from None
    return compiled
