"""Numbers and findings in words: what the captions of the pictures and the tiles say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.report.model import RunReport

__all__ = ["busiest", "clean", "count", "duration", "matches_per_event", "shorten", "steps", "throughput"]


def count(number: float) -> str:
    """Write a number with thousands separators, and a fraction only where it is small.

    >>> count(1234567), count(21.0), count(2.46), count(0.004)
    ('1,234,567', '21', '2.5', '0.004')
    """
    if number == int(number) or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 1 else f"{number:.2g}"


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


def matches_per_event(report: RunReport) -> str:
    """Say how many subscriptions an event matches."""
    if not report.events:
        return "There were no events to match."
    if not report.matches:
        return f"None of the {count(report.events)} events matches a subscription."
    values = dict(report.quantiles)
    parts = []
    if 0.5 in values:
        parts.append(f"Half of the events match {_subscriptions(values[0.5])} or fewer")
    high = max((share for share in values if 0.5 < share < 1), default=None)
    if high is not None:
        parts.append(f"the busiest {100 * (1 - high):.3g} % match more than {count(values[high])}")
    if not parts:
        parts.append(f"An event matches {_subscriptions(report.matches / report.events)} on average")
    zero = _unmatched(report)
    nothing = f" {_capital(share_of(zero, report.events))} of the events match none." if zero else ""
    return "; ".join(parts) + "." + nothing


def busiest(report: RunReport) -> str:
    """Say how much the busiest subscriptions get."""
    if not report.busiest or not report.matches:
        return "No subscription was matched."
    top = report.busiest[0]
    share = share_of(top.matches, report.events)
    alone = f"The busiest subscription, {clean(top.id)}, matches {share} of the events"
    if len(report.busiest) == 1:
        return f"{alone}."
    together = sum(each.matches for each in report.busiest)
    shown, share = count(len(report.busiest)), share_of(together, report.matches)
    return f"{alone}; the {shown} shown take {share} of all matches."


def throughput(report: RunReport) -> str:
    """Say how fast the match job was."""
    rate = report.events_per_second
    events = sum(each.events for each in report.throughput)
    if not events:
        return "The match job handled no events."
    if rate is None:
        return "The time of the match job was not measured."
    tasks = len(report.throughput)
    batches = "one batch" if tasks == 1 else f"{count(tasks)} batches"
    took = duration(report.match_seconds)
    return f"{count(events)} events in {took}, in {batches}: {count(round(rate))} events a second on average."


def steps(report: RunReport) -> str:
    """Say which step took the most time."""
    total = sum(step.seconds for step in report.steps)
    if not report.steps or total <= 0:
        return "No time was measured."
    if len(report.steps) == 1:
        return f"The run had one step, {clean(report.steps[0].name)}, of {duration(total)}."
    slowest = max(report.steps, key=lambda step: step.seconds)
    share = share_of(slowest.seconds, total)
    return f"The run took {duration(total)}; the longest step, {clean(slowest.name)}, took {share} of it."


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


def _unmatched(report: RunReport) -> int:
    edges, counts = report.matches_per_event.edges, report.matches_per_event.counts
    return counts[0] if counts and edges[:2] == (0, 1) else 0


def _subscriptions(number: float) -> str:
    return f"{count(number)} subscription{'' if number == 1 else 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
