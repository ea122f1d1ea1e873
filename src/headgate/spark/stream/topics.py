"""Addresses of Kafka: `kafka://host:9092/topic?option=value`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from headgate.errors import TableError
from headgate.spark.stream.settings import KAFKA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.spark.stream.settings import StreamSettings

NATS_OPTIONS = "nats."


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
        place, _, query = address.removeprefix(KAFKA).partition("?")
        servers, _, name = place.partition("/")
        if "@" in servers:
            raise TableError(
                "a Kafka address has no user: set kafka.security.protocol, kafka.sasl.mechanism and "
                "kafka.sasl.jaas.config as options"
            )
        if not servers or not name:
            raise TableError("a Kafka address is kafka://host:9092/topic, with options after a ?")
        options = {key: value for key, value in shared.items() if not key.startswith(NATS_OPTIONS)}
        for part in filter(None, query.split("&")):
            key, equals, value = part.partition("=")
            if not equals:
                raise TableError(
                    f"options of a Kafka address are name=value, joined by &: {key!r} has no value"
                )
            options[key] = unquote(value)
        return cls(servers, unquote(name), options)


def check(settings: StreamSettings) -> None:
    """Refuse addresses that cannot be right, before Spark starts."""
    for address in (settings.events, settings.output):
        if address.startswith(KAFKA):
            Topic.of(address, settings.options)
    if (settings.changes or "").startswith(KAFKA):
        raise TableError("changes of subscriptions come from a folder or from nats://, not from Kafka")
