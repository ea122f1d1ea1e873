"""Kafka as a source of events and a sink of matches, which Spark's own connector reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from headgate.errors import TableError
from headgate.stream.sources.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.stream.settings import StreamSettings

SCHEME = "kafka://"


class Kafka(Source):
    """Kafka: all options that are not for others are for it."""

    title, name = "Kafka", "kafka"
    schemes = (SCHEME,)

    def check(self, settings: StreamSettings) -> None:
        """Refuse addresses that cannot be right."""
        for address in (settings.events, settings.output):
            if self.has(address):
                Topic.of(address, settings.options)
        if self.has(settings.changes):
            self.changes(settings)


class Topic(NamedTuple):
    """What an address names."""

    servers: str
    name: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, address: str, shared: Mapping[str, str]) -> Topic:
        """Read an address; its own options go before those that are shared.

        >>> Topic.of("kafka://a:9092,b:9092/events?startingOffsets=latest", {})
        Topic(servers='a:9092,b:9092', name='events', options={'startingOffsets': 'latest'})
        """
        location, _, query = address.removeprefix(SCHEME).partition("?")
        servers, _, name = location.partition("/")
        if "@" in servers:
            raise TableError(
                "a Kafka address has no user: set kafka.security.protocol, kafka.sasl.mechanism and "
                "kafka.sasl.jaas.config as options"
            )
        if not servers or not name:
            raise TableError("a Kafka address is kafka://host:9092/topic, with options after a ?")
        # This module is loaded by the registry.
        from headgate.stream.sources.registry import SOURCES

        others = tuple(f"{source.name}." for source in SOURCES if not isinstance(source, Kafka))
        options = {key: value for key, value in shared.items() if not key.startswith(others)}
        for part in filter(None, query.split("&")):
            key, equals, value = part.partition("=")
            if not equals:
                raise TableError(
                    f"options of a Kafka address are name=value, joined by &: {key!r} has no value"
                )
            options[key] = unquote(value)
        return cls(servers, unquote(name), options)
