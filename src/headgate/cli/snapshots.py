"""Commands about snapshots on disk: what they hold and who uses them, and removing those that nobody does."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from headgate.cli.shell import cli, json_option, tell
from headgate.report.words import size

if TYPE_CHECKING:
    from headgate.runtime.inventory import SnapshotInfo


@cli.group()
def snapshot() -> None:
    """Look at snapshots, and remove those that nothing uses."""


@snapshot.command()
@click.argument("path", metavar="PATH")
@json_option
def info(path: str, *, as_json: bool) -> None:
    r"""Say what a snapshot holds: content, subscriptions, nodes, edges, shards, sizes, and who uses it.

    PATH is a snapshot (a path, s3:// or gs://), whose versions are listed, a directory of snapshots, or the
    state of a stream, whose snapshots are listed with what pins them. Arrays are not read; their sizes are
    not compared.

    \b
    Examples:
      headgate snapshot info snapshot/
      headgate snapshot info s3://bucket/ads --json
      headgate snapshot info state/
    """
    from headgate.runtime import inventory

    snapshots = inventory.look_at(path)
    lines = [line for each in snapshots for line in _lines(each)]
    total = sum(each.bytes for each in snapshots)
    if len(snapshots) != 1:
        lines.append(f"{len(snapshots):,} snapshots, {size(total)}")
    tell({"snapshots": [asdict(each) for each in snapshots], "bytes": total}, lines, as_json=as_json)


@snapshot.command()
@click.argument("path", metavar="PATH")
@click.option(
    "--keep", type=click.IntRange(0), default=2, show_default=True, metavar="N", help="Keep the newest N."
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@json_option
def prune(path: str, keep: int, *, dry_run: bool, as_json: bool) -> None:
    r"""Remove versions of a snapshot that nothing uses, all but the newest two.

    PATH is a snapshot (a path, s3:// or gs://), a directory of snapshots, or the state of a stream that does
    not run. Kept is the current version, what a process has mapped, what a stream goes on with or has pinned
    for a batch, and what a link in the directory leads to. What dead processes left half written is removed,
    too. In a store nobody sees who reads a version: keep as many as jobs may still read.

    \b
    Examples:
      headgate snapshot prune snapshot/ --dry-run
      headgate snapshot prune snapshot/ --keep 3
      headgate snapshot prune state/
    """
    from headgate.runtime import inventory

    done = inventory.prune(path, keep, dry=dry_run)
    word = "would remove" if dry_run else "removed"
    lines = [f"kept {place}: {reason}" for place, reason in done.kept]
    lines += [f"{word} {place}, {size(count)}" for place, count in done.removed]
    lines.append(
        f"{word} {len(done.removed):,} of {len(done.removed) + len(done.kept):,}, {size(done.bytes)}"
    )
    result = {
        "removed": [{"path": place, "bytes": count} for place, count in done.removed],
        "kept": [{"path": place, "reason": reason} for place, reason in done.kept],
        "bytes": done.bytes,
        "dry_run": dry_run,
    }
    tell(result, lines, as_json=as_json)


def _lines(each: SnapshotInfo) -> list[str]:
    if each.damaged is not None:
        return [each.path, f"  {each.damaged}"]
    counts = ", ".join(f"{count:,} {name}" for name, count in each.counts.items())
    source = ", ".join(f"{name} {value}" for name, value in each.source.items())
    rows = {
        "holds": f"{each.room}{f' over {each.content}' if each.content not in (None, each.room) else ''}",
        "counts": counts,
        "shards": f"{each.shards:,}" if each.shards > 1 else "",
        "size": f"{size(each.bytes)} in {each.files:,} files",
        "made": f"{each.made} by Headgate {each.headgate or 'of a version that does not say so'}",
        "from": source,
        "digest": each.digest[:16],
        "used by": ", ".join(each.used_by) or "nobody",
    }
    return [each.path, *(f"  {name:<8} {value}" for name, value in rows.items() if value)]
