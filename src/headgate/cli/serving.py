"""Commands about the service: run it, its keys, copies of what it keeps."""

from __future__ import annotations

import gc
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from headgate.cli.options import options_of
from headgate.cli.shell import cli, json_option, tell
from headgate.console.settings import ServeSettings
from headgate.core.machine import need
from headgate.errors import MachineError, StorageError
from headgate.report.words import many
from headgate.service.settings import QuotaSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.service.security.keys import Keys

_directory = partial(click.option, required=True, metavar="DIRECTORY", type=click.Path(path_type=Path))
_tenant = partial(click.option, "--tenant", default="default", show_default=True)
_DATA = _directory("--data", help="What `serve` was given.")
_YOUNG = 10_000
"""Objects made and not let go of after which the young ones among them are looked through."""
_DEMO_BYTES = 256 << 20
"""Bytes of events that a demo in a temporary directory keeps, at most."""


@cli.command()
@options_of(ServeSettings)
def serve(asked: ServeSettings) -> None:
    r"""Run the service: publish, subscribe and deliver over HTTP.

    Everything is on disk before it is acknowledged.

    It listens at 127.0.0.1 and needs no keys there. SIGTERM and Ctrl-C end it after what was begun is done.
    Its console is at /console.

    \b
    Examples:
      headgate serve --demo
      headgate serve --data data/
      headgate serve --data data/ --host 0.0.0.0 --certificate server.pem --private-key server.key
      curl localhost:8080/v1/events -H 'Content-Type: application/json' -d '{"id": "e1", "price": 12}'
    """
    need("service", *(["graph", "plan"] if asked.demo else []))
    if not asked.data and not asked.demo:
        raise click.UsageError("Missing option '--data': the directory that everything is kept in.")
    from headgate.service.running import set_up_log

    set_up_log(asked.log)
    if asked.data:
        _serve(asked)
        return
    # Python's own end, and not the signal's, so that the directory is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with TemporaryDirectory(prefix="headgate-demo-") as folder:
        _serve(replace(asked, data=folder, retention_bytes=min(asked.retention_bytes, _DEMO_BYTES)))


def _serve(asked: ServeSettings) -> None:
    from headgate.console.extension import Console
    from headgate.service.running import Running

    sites, tour = None, None
    if asked.network is not None:
        from headgate.network.assignment import read_sites

        sites = read_sites(Path(asked.network))
    if asked.demo:
        from headgate.console.tour import Tour, check_place

        check_place(asked.place)
        tour = Tour(asked.demo_rate)
        # Its webhook goes to a port of this machine.
        asked = replace(asked, private_webhooks=True)
    running = Running(asked, Console(sites, tour))

    def ready(address: str) -> None:
        # What is loaded by now stays: a collection that looked through it again and again would find nothing.
        gc.freeze()
        # A request of a hundred events makes about as many objects as are looked through by default.
        gc.set_threshold(_YOUNG, 20, 20)
        click.echo(f"headgate serves at {address}", err=True)
        click.echo(f"its console is at {address}/console", err=True)

    running.run(ready)


@cli.group()
def service() -> None:
    """Keys of the service, checks and copies of what it keeps."""


@service.group()
def key() -> None:
    """API keys: make them, list them, have them count no more."""


@key.command("add")
@_DATA
@_tenant(help="Whose key it is.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["publish", "subscribe", "read", "admin"]),
    help="What it allows; may be repeated.",
)
@click.option("--note", default="", help="What it is for.")
def add_key(data: Path, tenant: str, scopes: tuple[str, ...], note: str) -> None:
    r"""Make a key and print it. It is kept as a hash, and cannot be shown again.

    \b
    Example:
      headgate service key add --data data/ --tenant shop --scope publish --note "web shop"
    """
    # The first key may be made before the service runs.
    with _opened_keys(data, make=True) as keys:
        _, text = keys.add(tenant, scopes, note=note)
    click.echo(text)


@key.command("list")
@_DATA
@_tenant(help="Whose keys.")
def list_keys(data: Path, tenant: str) -> None:
    r"""List keys, without their secrets.

    \b
    Example:
      headgate service key list --data data/
    """
    with _opened_keys(data) as keys:
        for each in keys.listed(tenant):
            click.echo(f"{each.id}  {','.join(sorted(each.scopes))}  {each.note}".rstrip())


@key.command("remove")
@_DATA
@_tenant(help="Whose key it is.")
@click.argument("identity", metavar="ID")
def remove_key(data: Path, tenant: str, identity: str) -> None:
    r"""Have a key count no more; a service that runs notices within a second.

    \b
    Example:
      headgate service key remove --data data/ 0f3a9c
    """
    with _opened_keys(data) as keys:
        if not keys.remove(tenant, identity):
            raise MachineError(
                f"there is no key {identity!r} of tenant {tenant!r}: `headgate service key list` lists them"
            )


@service.command()
@_DATA
@_tenant(help="Whose quotas.")
@options_of(QuotaSettings)
@click.option("--clear", is_flag=True, help="Take all limits away first.")
@json_option
def quotas(asked: QuotaSettings, data: Path, tenant: str, *, clear: bool, as_json: bool) -> None:
    r"""Set what a tenant may use, or show it. Only who has the data directory can: tenants read it.

    What is not named stays. A service that runs takes it with the tenant's next request, within a second.

    \b
    Examples:
      headgate service quotas --data data/ --tenant shop --subscriptions 100000 --events-a-second 5000
      headgate service quotas --data data/ --tenant shop
    """
    need("service")
    import msgspec

    from headgate.service.security.keys import Key
    from headgate.service.settings import Quotas

    with _opened_keys(data) as keys:
        before = keys.quotas.get(tenant, Quotas())
        named = {name: value for name, value in vars(asked).items() if value is not None}
        now = msgspec.structs.replace(Quotas() if clear else before, **named)
        if now != before:
            keys.keep_quotas(tenant, now)
            keys.note(Key("", tenant, frozenset()), "set quotas", msgspec.json.encode(now).decode())
    if as_json:
        click.echo(msgspec.json.encode(now))
        return
    for name in Quotas.__struct_fields__:
        value = getattr(now, name)
        told = ("yes" if value else "no") if isinstance(value, bool) else value
        click.echo(f"{name}: {'no limit' if told is None else told}")


@contextmanager
def _opened_keys(data: Path, *, make: bool = False) -> Iterator[Keys]:
    need("service")
    from headgate.service.security.keys import Keys
    from headgate.service.server import make_place

    if not make and not data.is_dir():
        raise StorageError(f"{data} does not exist: give the directory that `headgate serve` was given")
    make_place(data)
    keys = Keys(data)
    try:
        yield keys
    finally:
        keys.close()


@service.command("check")
@_DATA
@json_option
def check_data(data: Path, *, as_json: bool) -> None:
    r"""Read all that the service keeps, and list what is damaged; 0 if nothing is.

    \b
    Example:
      headgate service check --data data/
    """
    need("service")
    from headgate.service.backup import check

    tenants, lines = list(check(data)), []
    for each in tenants:
        lines.append(
            f"{each.tenant}: {each.events:,} events with {each.matches:,} matches, {each.subscriptions:,} "
            f"subscriptions, {each.consumers:,} consumers"
        )
        lines += [f"  damaged: {line}" for line in each.damage]
    damaged = any(each.damage for each in tenants)
    tell(
        [each._asdict() for each in tenants],
        lines if damaged else [*lines, "nothing is damaged"],
        as_json=as_json,
    )
    if damaged:
        sys.exit(1)


@service.command("backup")
@_DATA
@_directory("--to", "target", help="A new directory.")
def backup_data(data: Path, target: Path) -> None:
    r"""Copy all that is committed now, while the service runs.

    \b
    Example:
      headgate service backup --data data/ --to backups/monday
    """
    need("service")
    from headgate.service.backup import back_up

    names = back_up(data, target)
    click.echo(f"{target} has {many(len(names), 'tenant')}: {', '.join(names)}")


@service.command("restore")
@_directory("--from", "copy", help="What `backup` wrote.")
@_DATA
def restore_data(copy: Path, data: Path) -> None:
    r"""Make a data directory of a copy, after checking the copy.

    \b
    Example:
      headgate service restore --from backups/monday --data data/
    """
    need("service")
    from headgate.service.backup import restore

    names = restore(copy, data)
    click.echo(f"{data} has {many(len(names), 'tenant')}: start it with headgate serve --data {data}")
