"""Which languages of other systems there are, and what converts each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headgate.core.subscription import CESQL, CLOUDEVENTS, ELASTICSEARCH, EVENTBRIDGE, FOREIGN, VESPA
from headgate.records.importers.sql import naming
from headgate.records.names import EITHER, EXACT_NAMES, TOLD, USUAL, NameSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_CONVERT = "headgate.records.importers.{}.convert"


def convert(text: str, dialect: str, settings: NameSettings = USUAL) -> str:
    """Return the SQL filter that means the same; refuse what cannot be said in SQL, with its place.

    Where a language tells apart what the settings do not, the filter means what they can say.

    >>> convert('{"source": ["aws.ec2"]}', "eventbridge")
    "source = 'aws.ec2' OR array_contains(source, 'aws.ec2')"
    """
    found = _found.get(dialect)
    if found is None:
        assert dialect in FOREIGN
        found = _found[dialect] = import_module(_CONVERT.format(dialect)).to_sql
    if settings.usual:
        return found(text)
    with naming(settings):
        return found(text)


EXACTLY = {
    EVENTBRIDGE: NameSettings(TOLD, EXACT_NAMES, EITHER),
    CLOUDEVENTS: NameSettings(names=EXACT_NAMES),
    CESQL: NameSettings(names=EXACT_NAMES),
    ELASTICSEARCH: NameSettings(names=EXACT_NAMES, dots=EITHER),
    VESPA: NameSettings(names=EXACT_NAMES),
}
"""What names mean in each language: the settings with which filters mean what they mean there."""
_found: dict[str, Callable[[str], str]] = {}
