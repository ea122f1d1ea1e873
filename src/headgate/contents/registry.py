"""Which kinds of content there are, and which one filters belong to: by their dialects, or by their snapshot.

Kinds are found by name: those of Headgate, those of installed packages (entry points `headgate.contents`),
and those in the modules that HEADGATE_KINDS names (`headgate --kinds MODULE`). Nothing that a snapshot says
is ever imported. A kind's module loads nothing large, and what does is loaded when it is asked for: most
programs need one kind.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from headgate.contents.kind import SETTINGS, Kind, listed
from headgate.contents.settings import NAMES
from headgate.core.event import learn_types
from headgate.core.rooms import FILTERS, GRAPH, MIXED_SIGN, RANKING, RDF, RECORDS, XML
from headgate.core.subscription import learn_dialects
from headgate.errors import SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import ContentRoom

GROUP = "headgate.contents"
"""The entry points of kinds in other packages; each is an object of a class of `Kind`."""
MODULES = "HEADGATE_KINDS"
"""The environment's list of modules, with commas between, that have a `KIND`."""
DEFAULT = RECORDS
"""The kind of filters that name no dialect."""
_OURS = {name: f"headgate.{name}.kind" for name in (RECORDS, RDF, XML)}


@cache
def kinds() -> Mapping[str, Kind]:
    """Return all kinds by name: Headgate's own first, then the others in the order of their names."""
    by_name: dict[str, Kind] = {name: import_module(module).KIND for name, module in _OURS.items()}
    others = [(f"entry point {each.name}", each.load()) for each in entry_points(group=GROUP)]
    named = filter(None, (name.strip() for name in os.environ.get(MODULES, "").split(",")))
    others += [(f"module {name}", _kind_in(name)) for name in named]
    for origin, kind in sorted(others, key=lambda each: each[0]):
        _check(kind, origin, by_name)
        by_name[kind.name] = kind
        learn_dialects(kind.dialects)
        learn_types(kind.types)
    return by_name


def _kind_in(module: str) -> object:
    try:
        return getattr(import_module(module), "KIND", None)
    except ImportError as error:
        raise SubscriptionError(f"kinds of content: module {module!r} cannot be imported: {error}") from None


def _check(kind: object, origin: str, known: Mapping[str, Kind]) -> None:
    """Refuse what is no kind, and one that takes a name or a dialect of another."""
    if not isinstance(kind, Kind):
        raise SubscriptionError(f"kinds of content: {origin} has no KIND: make an object of a class of Kind")
    if kind.name in known or kind.name in {GRAPH, RANKING} or not kind.name.isidentifier():
        raise SubscriptionError(f"kinds of content: the name {kind.name!r} of {origin} is taken, or no name")
    taken = {dialect for each in known.values() for dialect in each.dialects}
    if not kind.dialects or taken.intersection(kind.dialects):
        raise SubscriptionError(
            f"kinds of content: {origin} has no dialect, or one of another kind: it has "
            f"{', '.join(kind.dialects) or 'none'}"
        )


def kind_of(content: str | None) -> Kind:
    """Find a kind by its name; without one, that of filters that name no dialect.

    Several kinds have their names joined: they are asked as one.

    >>> kind_of("rdf").title, kind_of("records+rdf").title
    ('RDF', 'records and RDF')
    """
    if content is not None and MIXED_SIGN in content:
        return _mixed(tuple(kind_of(name) for name in content.split(MIXED_SIGN)))
    kind = kinds().get(content or DEFAULT)
    if kind is None:
        raise SubscriptionError(
            f"there is no kind of content {content!r} here: install its package, or name its module in "
            f"{MODULES}"
        )
    return kind


@cache
def _mixed(some: tuple[Kind, ...]) -> Kind:
    from headgate.contents.mixed.kind import MixedKind

    return MixedKind(some)


def is_content(room: str) -> bool:
    """Tell whether the name of a snapshot's room is that of a kind of content, or of several."""
    return all(name in kinds() for name in room.split(MIXED_SIGN))


def contents_of(dialects: Iterable[str]) -> str | None:
    """Name the kinds that speak some dialects, as one; None if there are none.

    >>> contents_of(["sparql", "sql", "tuples"])
    'records+rdf'
    """
    spoken = set(dialects)
    names = [kind.name for kind in kinds().values() if spoken.intersection(kind.dialects)]
    return MIXED_SIGN.join(names) or None


def content_of(dialects: Iterable[str], what: str) -> str | None:
    """Name the kind that speaks all of some dialects, none if there are none; refuses several kinds.

    >>> content_of(["sparql", "tuples"], "the filters")
    'rdf'
    """
    spoken = set(dialects)
    speaking = [kind for kind in kinds().values() if spoken.intersection(kind.dialects)]
    if len(speaking) > 1:
        looked = [
            f"{kind.title} ({quoted(each for each in kind.dialects if each in spoken)})" for kind in speaking
        ]
        raise SubscriptionError(
            f"{what} look at {' and at '.join(looked)}, and nothing is both: keep them apart"
        )
    return speaking[0].name if speaking else None


def content_at(path: Path) -> str:
    """Name the kind of a snapshot's filters, wherever in it they are."""
    # Reading snapshots loads numpy, which a list of dialects does not need.
    from headgate.core.snapshot import room_of, shard_name
    from headgate.core.versions.current import called, resolved

    path = resolved(path)
    room = room_of(path)
    if is_content(room):
        return room
    if room in {GRAPH, RANKING}:
        return content_at(path / FILTERS)
    if room.endswith("shards"):
        return content_at(path / shard_name(0))
    raise SnapshotError(
        f"snapshot {called(path)} is a snapshot of {room!r}: give one of {titles()}, of a ranking, or of a "
        "graph"
    )


def titles() -> str:
    """List what people call the events of all kinds.

    >>> titles()
    'records, of RDF, of XML'
    """
    return ", of ".join(kind.title for kind in kinds().values())


def kind_at(path: Path) -> Kind:
    """Return the kind of a snapshot's filters."""
    return kind_of(content_at(path))


def room_at(path: Path) -> ContentRoom:
    """Return what opens the filters in a snapshot; that of RDF opens all of them with one taxonomy."""
    return kind_at(path).room_at(path)


def room_of_content(content: str | None, wanted: FilterSettings | None = None) -> ContentRoom:
    """Return what builds filters of a kind, with their settings."""
    return kind_of(content).room(wanted)


def strange(kind: Kind, wanted: FilterSettings) -> tuple[list[Kind], str] | None:
    """Find settings that are not about a kind: whose they are, and what to call them.

    >>> from headgate.contents.kind import FilterSettings
    >>> strange(kind_of("rdf"), FilterSettings(sample="events.jsonl"))[1]
    'a schema and a sample'
    >>> strange(kind_of("rdf"), FilterSettings(nulls="told"))[1]
    'settings of names'
    >>> owners, named = strange(kind_of("records"), FilterSettings(unindexed="allow"))
    >>> named, titles_of(owners)
    ('settings of unindexed filters', 'RDF and XML')
    """
    wrong = [name for name in wanted.said if name not in kind.settings]
    if not wrong:
        return None
    owners = {name: [each for each in kinds().values() if name in each.settings] for name in SETTINGS}
    own_kinds = owners[wrong[0]]
    named = wrong[:1] if len(own_kinds) > 1 else [name for name in SETTINGS if owners[name] == own_kinds]
    about = [SETTINGS[name] for name in named if (name in NAMES) is (wrong[0] in NAMES)]
    return own_kinds, " and ".join(dict.fromkeys(about))


def titles_of(some: Iterable[Kind]) -> str:
    """List what people call the events of some kinds.

    >>> titles_of([kind_of("rdf"), kind_of("xml")])
    'RDF and XML'
    """
    return listed(kind.title for kind in some)


def quoted(words: Iterable[str]) -> str:
    """List words for a message.

    >>> quoted(["sql", "labels"])
    "'sql' and 'labels'"
    """
    return listed(map(repr, words))
