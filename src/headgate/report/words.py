"""Numbers and texts as the captions of pictures and the tiles write them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def count(number: float) -> str:
    """Write a number with thousands separators, and a fraction only where it is small.

    >>> count(1234567), count(21.0), count(2.46), count(0.004)
    ('1,234,567', '21', '2.5', '0.004')
    """
    if number == int(number) or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 1 else f"{number:.2g}"


def many(number: float, one: str, several: str = "") -> str:
    """Write a number and its noun.

    >>> many(1, "node"), many(2000, "node"), many(0, "intermediary", "intermediaries")
    ('1 node', '2,000 nodes', '0 intermediaries')
    """
    return f"{count(number)} {one if number == 1 else several or one + 's'}"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it.

    >>> duration(0.0123), duration(4.26), duration(98), duration(3725)
    ('12 ms', '4.3 s', '98 s', '1 h 2 min')
    """
    if seconds < 1:
        return f"{seconds * 1000:,.0f} ms"
    if seconds < 300:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def clean(text: str) -> str:
    r"""Put a text on one line, without the characters that XML or a terminal cannot show.

    >>> clean("a =\x00 1\n  AND b")
    'a = 1 AND b'
    """
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def shorten(text: str, length: int) -> str:
    """Cut a long text at a blank, if there is one near the end.

    >>> shorten("country = 'FR' AND city = 'Paris'", 24)
    "country = 'FR' AND city…"
    """
    text = clean(text)
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    blank = cut.rfind(" ")
    return (cut if blank < length * 2 // 3 or text[length - 1] == " " else cut[:blank]) + "…"


def range_of(low: int, high: int) -> str:
    """Write a range of whole numbers.

    >>> range_of(3, 3), len(range_of(1_000, 2_000))
    ('3', 11)
    """
    return f"{low:,}" if low == high else f"{low:,}\N{EN DASH}{high:,}"


def size(number: float) -> str:
    """Write a number of bytes.

    >>> size(812), size(12_345), size(3 << 30)
    ('812 B', '12.1 KiB', '3.0 GiB')
    """
    for unit in _UNITS[:-1]:
        if number < 1_024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1_024
    return f"{number:.1f} {_UNITS[-1]}"


def share_of(part: float, whole: float) -> str:
    """Write a share as a percentage that is never rounded to nothing or to everything.

    >>> share_of(1, 3), share_of(1, 1_000_000), share_of(99_999, 100_000), share_of(0, 5), share_of(0, 0)
    ('33 %', 'less than 0.1 %', 'more than 99.9 %', '0 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "less than 0.1 %"
    if 99.9 < percent < 100:
        return "more than 99.9 %"
    digits = 1 if 0 < percent < 9.95 or 99 < percent < 100 else 0
    return f"{percent:.{digits}f} %"
