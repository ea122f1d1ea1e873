"""Which sites are relieved, and when they are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.network.assignment import Assignment, Input, View
from headgate.network.site import SiteStatus, ViewStatus
from headgate.network.watch import Limits, SlowSites

if TYPE_CHECKING:
    from headgate.core.event import Id

CHAIN = ("a", "b", "c", "d")


def _told() -> dict[str, Assignment]:
    """The source feeds a, which feeds b, and so on."""
    before = ("source", *CHAIN)
    found: dict[str, Assignment] = {
        "source": Assignment(network="n", site="source", epoch=1, documents="default")
    }
    for name, above in zip(CHAIN, before, strict=False):
        view = View(name, "x = 1", "sql", 1, (Input("a" if above == "source" else above, above, "", "sql"),))
        feeds: dict[str, tuple[Id, ...]] = {"next": (name,)} if name != "d" else {}
        found[name] = Assignment(network="n", site=name, epoch=1, views=(view,), feeds=feeds)
    return found


def _status(reached: dict[str, int]) -> dict[str, SiteStatus | None]:
    rows = {"source": ("a", reached["source"]), **{name: (name, reached[name]) for name in CHAIN}}
    return {
        name: SiteStatus("n", name, 1, at, [ViewStatus(view, 1, at, 0, 0)], [], 0, 0, 0.0, None)
        for name, (view, at) in rows.items()
    }


def _behind(lag: dict[str, int], at: int) -> dict[str, SiteStatus | None]:
    """Say how sites fare where some are so many documents behind the site that feeds them."""
    reached, last = {"source": at}, at
    for name in CHAIN:
        reached[name] = last = max(0, last - lag.get(name, 0))
    return _status(reached)


def test_a_slow_site_is_told_from_those_behind_it() -> None:
    """A document comes each second; b is four seconds behind a, then keeps up again."""
    slow, told = SlowSites(Limits(high=3.0, low=1.0, hold=5.0)), _told()
    said: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    for now in range(100):
        late = {"b": 4} if now < 20 or 40 <= now < 60 else {}
        advice = slow.look(float(now), told, _behind(late, now))
        if advice != ((), ()):
            said.append((now, *advice))
    # It was last seen behind in second 19, and taken back five later; the second time ten.
    assert said == [(4, ("b",), ()), (24, (), ("b",)), (43, ("b",), ()), (69, (), ("b",))]


def test_where_most_are_behind_nobody_is_relieved() -> None:
    slow, told = SlowSites(Limits(high=3.0, low=1.0, hold=5.0)), _told()
    for now in range(40):
        assert slow.look(float(now), told, _behind(dict.fromkeys(CHAIN, 5), now + 100)) == ((), ())
    # One that feeds nobody cannot be relieved, and one that does not answer is not slow.
    slow = SlowSites(Limits(high=3.0, low=1.0, hold=5.0))
    for now in range(40):
        found = {**_behind({"d": 9, "b": 9}, now), "b": None}
        assert slow.look(float(now), told, found) == ((), ())
