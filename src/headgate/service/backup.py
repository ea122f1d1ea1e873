"""Copies of a data directory: made while the service runs, checked, put back.

    copy/
      format          what it is
      server.db       tenants, keys, who did what
      tenants/NAME/store.db

Snapshots of indexes are not copied: they are built again from the subscriptions.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import HeadgateError, StorageError
from headgate.service.security.keys import FILE as SERVER_FILE
from headgate.service.server import FORMAT, check_format
from headgate.service.storage.database import SERVER, TENANT, Database
from headgate.service.storage.log import unpack
from headgate.service.storage.store import FILE, Store, renew

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headgate.service.storage.database import Layout


class Checked(NamedTuple):
    """What was found of a tenant."""

    tenant: str
    events: int
    matches: int
    subscriptions: int
    consumers: int
    damage: list[str]


def tenants_of(data: Path) -> list[str]:
    """List the tenants of a data directory; refuses another directory."""
    check_format(data)
    places = sorted((data / "tenants").iterdir()) if (data / "tenants").exists() else []
    return [place.name for place in places if (place / FILE).exists()]


def back_up(data: Path, target: Path) -> list[str]:
    """Copy all that is committed now to an empty directory; the service may run."""
    names = tenants_of(data)
    if target.exists() and any(target.iterdir()):
        raise StorageError(f"{target} has files in it: give a new directory")
    target.mkdir(parents=True, exist_ok=True)
    if (data / SERVER_FILE).exists():
        _copy(data / SERVER_FILE, target / SERVER_FILE, SERVER)
    for name in names:
        folder = target / "tenants" / name
        folder.mkdir(parents=True)
        _copy(data / "tenants" / name / FILE, folder / FILE)
    # Last: a copy without it is not whole.
    (target / "format").write_text(FORMAT, "utf-8")
    return names


def _copy(source: Path, target: Path, layout: Layout = TENANT) -> None:
    with closing(Database(source, layout)) as database:
        database.backup(target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def restore(copy: Path, data: Path) -> list[str]:
    """Make a data directory of a copy, after the copy has been checked."""
    damaged = [f"{each.tenant}: {line}" for each in check(copy) for line in each.damage]
    if damaged:
        raise StorageError(f"the copy {copy} is damaged: {damaged[0]}")
    if data.exists() and any(data.iterdir()):
        raise StorageError(
            f"{data} has files in it: give a new directory, and then start the service with it"
        )
    shutil.copytree(copy, data, dirs_exist_ok=True)
    names = tenants_of(data)
    for name in names:
        with closing(Database(data / "tenants" / name / FILE)) as database:
            renew(database)
    return names


def check(data: Path) -> Iterator[Checked]:
    """Read all that is kept, tenant by tenant, and list what is damaged."""
    if (data / SERVER_FILE).exists():
        with closing(Database(data / SERVER_FILE, SERVER)) as server:
            damage = server.damage()
        if damage:
            yield Checked(SERVER_FILE, 0, 0, 0, 0, damage)
    for name in tenants_of(data):
        yield _check_tenant(name, data / "tenants" / name)


def _check_tenant(name: str, folder: Path) -> Checked:
    damage: list[str] = []
    events = matches = subscriptions = consumers = 0
    try:
        store = Store(folder)
    except StorageError as error:
        return Checked(name, 0, 0, 0, 0, [str(error)])
    try:
        damage += store.database.damage()
        last = 0
        for first, end, packed in store.database.reader.execute(
            "SELECT first, last, block FROM blocks ORDER BY first"
        ):
            if first <= last:
                damage.append(f"the block at {first} begins before the one before it ends")
            last = end
            try:
                block = unpack(first, packed)
            except StorageError as error:
                damage.append(str(error))
                continue
            if block.last != end:
                damage.append(
                    f"the block at {first} has {len(block)} events, and its row says that it ends at {end}"
                )
            events, matches = events + len(block), matches + len(block.subscriptions)
        known = {each.id for each in store.consumers.all()}
        for each in store.subscriptions.all():
            subscriptions += 1
            if each.consumer not in known:
                damage.append(
                    f"subscription {each.id!r} belongs to consumer {each.consumer!r}, which is not there"
                )
            try:
                _ = each.indexed
            except (HeadgateError, ValueError) as error:
                damage.append(f"subscription {each.id!r} cannot be read: {error}")
        consumers = len(known)
    except HeadgateError as error:
        damage.append(str(error))
    finally:
        store.close()
    return Checked(name, events, matches, subscriptions, consumers, damage)
