"""Commands that talk to a service: publish events, listen to them, look after subscriptions there."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.shell import cli, json_option
from headgate.cli.subscriptions import subscriptions
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.client.client import Client

_AT_ONCE = 500
"""Lines that are published together."""


def _service(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says where a service is."""
    address = click.option(
        "--url",
        metavar="ADDRESS",
        envvar="HEADGATE_URL",
        help="Where the service is.  [default: http://127.0.0.1:8080]",
    )
    # A key in the arguments would be seen by others on the machine.
    return address(command)


def _client(url: str | None) -> Client:
    from headgate.client.client import Client

    return Client(url)


@cli.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@_service
@click.option("--matches", is_flag=True, help="Say who matched, event by event.")
@click.option("--partial", is_flag=True, help="Take good events although others are refused.")
@json_option
def publish(files: tuple[str, ...], url: str | None, *, matches: bool, partial: bool, as_json: bool) -> None:
    r"""Publish lines of JSON to a service: rows with an id, or CloudEvents; from files, or standard input.

    Events are on disk there when this ends. The key, if the service wants one, is in HEADGATE_KEY.

    \b
    Examples:
      echo '{"id": "e1", "topic": "sport", "price": 12}' | headgate publish
      headgate publish events.jsonl --matches --url https://headgate.example
    """
    accepted = refused = matched = 0
    with _client(url) as client:
        for lines in _hundreds(_lines(files)):
            found = client.publish(lines, matches=matches, partial=partial)
            accepted, refused, matched = (
                accepted + found.accepted,
                refused + found.refused,
                matched + found.matched,
            )
            for each in found.events:
                if each.refused is not None:
                    click.echo(f"refused: event {each.id!r}: {each.refused}", err=True)
                elif matches and not as_json:
                    click.echo(f"{each.id}\t{' '.join(each.matches or ())}")
    if as_json:
        click.echo(json.dumps({"accepted": accepted, "refused": refused, "matched": matched}))
    else:
        click.echo(f"events published: {accepted:,}, matches: {matched:,}, refused: {refused:,}", err=True)


def _lines(files: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for name in files or ("-",):
        try:
            with click.open_file(name, "rb") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield _object(line, name, number)
        except OSError as error:
            raise TableError(f"{name} cannot be read: {error.strerror}") from None


def _object(line: bytes, name: str, number: int) -> dict[str, Any]:
    from headgate.core.event import read_object
    from headgate.errors import EventError

    try:
        return read_object(line)
    except EventError as error:
        raise TableError(f"{'standard input' if name == '-' else name}, line {number}: {error}") from None


def _hundreds(lines: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    for line in lines:
        some.append(line)
        if len(some) == _AT_ONCE:
            yield some
            some = []
    if some:
        yield some


@cli.command()
@click.argument("consumer", default="default")
@_service
@click.option(
    "--after", type=int, metavar="CURSOR", help="Begin after this cursor, and not where the consumer is."
)
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after so many deliveries.")
@click.option("--no-acknowledge", is_flag=True, help="Leave the consumer's cursor where it is.")
def listen(
    consumer: str, url: str | None, after: int | None, count: int | None, *, no_acknowledge: bool
) -> None:
    r"""Print the deliveries of a consumer as they arrive, as lines of JSON.

    \b
    Examples:
      headgate listen
      headgate listen alerts --after 0 --count 10 --no-acknowledge
    """
    import msgspec

    with _client(url) as client:
        deliveries = client.listen(consumer, after=after, acknowledge=not no_acknowledge)
        for seen, delivery in enumerate(deliveries, 1):
            click.echo(msgspec.json.encode(delivery).decode())
            if count is not None and seen == count:
                if not no_acknowledge:
                    client.acknowledge(consumer, delivery.cursor)
                return


@subscriptions.command("add")
@click.argument("identity", metavar="ID")
@click.argument("text", metavar="FILTER")
@_service
@click.option("--dialect", default="sql", show_default=True, help="The language of the filter.")
@click.option("--consumer", help="Who gets its events.  [default: default]")
@click.option("--score", type=float, help="What it is ranked by.")
@click.option("--node", help="The node of the graph where it hangs.")
def add_subscription(
    identity: str,
    text: str,
    url: str | None,
    dialect: str,
    consumer: str | None,
    score: float | None,
    node: str | None,
) -> None:
    r"""Have a subscription at a service; one of the same id is replaced.

    \b
    Example:
      headgate subscriptions add cheap "price < 10 AND topic = 'sport'" --consumer alerts
    """
    given: dict[str, Any] = {"dialect": dialect, "consumer": consumer, "score": score, "node": node}
    with _client(url) as client:
        client.subscribe(
            identity, text, **{name: value for name, value in given.items() if value is not None}
        )


@subscriptions.command("remove")
@click.argument("identity", metavar="ID")
@_service
def remove_subscription(identity: str, url: str | None) -> None:
    r"""Have no subscription of an id at a service.

    \b
    Example:
      headgate subscriptions remove cheap
    """
    with _client(url) as client:
        client.unsubscribe(identity)


@subscriptions.command("list")
@_service
@click.option("--search", help="Only those whose id or filter has this text.")
def list_subscriptions(url: str | None, search: str | None) -> None:
    r"""List the subscriptions of a service as lines of JSON.

    \b
    Example:
      headgate subscriptions list --search sport
    """
    with _client(url) as client:
        for each in client.subscriptions(search):
            click.echo(json.dumps(each, ensure_ascii=False))


@subscriptions.command("import")
@click.argument("file", type=click.File("rb"), metavar="FILE")
@_service
def import_subscriptions(file: Any, url: str | None) -> None:
    r"""Have all subscriptions of a file with lines of JSON at a service; tells those that are refused.

    \b
    Example:
      headgate subscriptions import subs.jsonl
    """
    with _client(url) as client:
        found = client.import_subscriptions(line.rstrip(b"\r\n") for line in file if line.strip())
    for each in found.errors:
        click.echo(f"refused: line {each.get('line')}, {each.get('id')!r}: {each.get('reason')}", err=True)
    click.echo(f"{found.accepted:,} subscriptions, {found.refused:,} refused", err=True)
    if found.refused:
        sys.exit(3)
