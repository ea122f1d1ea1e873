"""What requests of several jobs say: of filters, of documents, of refused rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.core.settings import Request, setting, settings_of
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

REFUSED = "`OUTPUT-rejected.jsonl`"
"""Where refused rows go, if nothing is said."""


def formats() -> tuple[str, ...]:
    """List the formats of documents, of all kinds of content."""
    from headgate.contents.registry import kinds

    return tuple(dict.fromkeys(short for kind in kinds().values() for short in kind.types))


_NAMES = "settings of names"


@dataclass(frozen=True, kw_only=True)
class PlainSettings(Request, table="subscriptions"):
    """Settings of filters that are the same in programs, in files and on the command line.

    A field is all that a setting needs but for what obeys it: its options, its rows in files, its check and
    its line in the docs are made of it. Which kinds of content obey it, these say (`Kind.settings`).
    """

    namespaces: Mapping[str, str] | None = setting(
        "XML: a [prefix of names in filters](xpath.md#names-and-namespaces), and its namespace",
        option="--namespace",
        metavar="PREFIX=NAMESPACE",
        called="namespaces",
    )
    unindexed: str | None = setting(
        "RDF and XML: what becomes of filters that no index leads to ([SPARQL](sparql.md#whole-queries), "
        "[XPath](xpath.md#what-is-indexed-and-what-is-verified))",
        listed=("refuse", "allow"),
        shown="`refuse`",
        more="Each of those that are allowed is evaluated for every event.",
        called="settings of unindexed filters",
        about="filters no index leads to",
    )
    nulls: str | None = setting(
        "records: whether [`present(a)`](language.md#null-case-and-dots) tells null from missing",
        listed=("missing", "told"),
        shown="`missing`",
        called=_NAMES,
        about="whether null is told from missing",
    )
    names: str | None = setting(
        "records: whether `Price` and `price` are [one attribute or two](language.md#null-case-and-dots)",
        listed=("any_case", "exact"),
        shown="`any_case`",
        called=_NAMES,
        about="whether case tells names apart",
    )
    dots: str | None = setting(
        "records: whether a [dot in a name](language.md#null-case-and-dots) goes into an object, is part of "
        "the name, or either",
        listed=("path", "name", "either"),
        shown="`path`",
        called=_NAMES,
        about="what a dot in a name is",
    )

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        check_plain(self)

    @property
    def plain(self) -> dict[str, Any]:
        """Return these settings by their names."""
        return {name: getattr(self, name) for name in PLAIN}


PLAIN = {each.name: each for each in settings_of(PlainSettings)}
"""These settings by their names."""
NAMES = tuple(name for name, each in PLAIN.items() if each.called == _NAMES)
"""Those that say together what names mean."""


def check_plain(given: object) -> None:
    """Refuse values of such settings that mean nothing; `given` has some of them."""
    for name, each in PLAIN.items():
        value = getattr(given, name, None)
        if each.choices and value is not None and value not in each.choices:
            *most, last = map(repr, each.choices)
            raise SubscriptionError(
                f"{name} is {value!r}: give {', '.join(most)} or {last}, for {each.about}"
            )


@dataclass(frozen=True, kw_only=True)
class Documents(Request):
    """What is said of events that are documents."""

    format: str | None = setting(
        "RDF, XML: what documents are written in that do not say so",
        key="events.format",
        listed=formats,
        more="These are rows that have no `datacontenttype`, and files whatever their names.",
    )
