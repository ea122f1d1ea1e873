"""The page on files: what it says of damaged snapshots is what opening them says."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest

from headgate import Subscription
from headgate.core.snapshot import MANIFEST, VERSION
from headgate.core.versions import current
from headgate.errors import SnapshotError
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import LAYOUT
from tests.docs.fences import ROOT

PAGE = (ROOT / "docs" / "files.md").read_text("utf-8")
_TABLE = PAGE.partition("| case | message |")[2].partition("\n\n")[0]
CASES: dict[str, str] = dict(re.findall(r"^\| ([^|]+) \| `(.+)` \|$", _TABLE, re.MULTILINE))
STREAM = "stream.npy"


def damage(case: str, snapshot: Path) -> None:
    """Do to a snapshot what the table's row says."""
    manifest, stream = snapshot / MANIFEST, snapshot / STREAM
    data = stream.read_bytes()
    match case:
        case "no directory":
            shutil.rmtree(snapshot)
        case "no manifest":
            manifest.unlink()
        case "a manifest of something else":
            manifest.write_text("{}")
        case "a changed manifest":
            manifest.write_bytes(manifest.read_bytes().replace(b'"subscriptions": 1', b'"subscriptions": 2'))
        case "a missing array":
            stream.unlink()
        case "a truncated array":
            stream.write_bytes(data[:-1])
        case "a changed byte":
            stream.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "another version":
            rewrite(manifest, b'"version": %d' % VERSION, b'"version": %d' % (VERSION + 1))
        case "another layout":
            rewrite(manifest, b'"layout": %d' % LAYOUT, b'"layout": %d' % (LAYOUT - 1))
        case "a `current` that names nothing":
            (snapshot / current.CURRENT).write_text("")
        case "a version that is gone":
            gone = current.named_after("9f2c41d0a7b1e6c3" * 4, ())
            (snapshot / current.CURRENT).write_bytes(current.text_of(gone))
        case "another format of versions":
            later = current.text_of(current.named_after("0" * 64, ()))
            (snapshot / current.CURRENT).write_bytes(later.replace(b'"version": 1', b'"version": 2'))
        case _:
            raise AssertionError(f"no way is known to make {case!r}")


def rewrite(manifest: Path, old: bytes, new: bytes) -> None:
    """Change a manifest and its checksum."""
    head, _, rest = manifest.read_bytes().partition(b'",')
    assert old in rest
    rest = b"," + rest.replace(old, new)
    start = head[:-64] + hashlib.sha256(rest).hexdigest().encode()
    manifest.write_bytes(start + b'"' + rest)


@pytest.mark.parametrize("case", CASES)
def test_damaged_snapshots(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = Path("DIR")
    RecordIndex.build([Subscription("s", "a = 1")]).save(place)
    assert len(RecordIndex.open(place)) == 1
    damage(case, place)
    with pytest.raises(SnapshotError) as refused:
        RecordIndex.open(place)
    assert str(refused.value) == CASES[case]


def test_there_are_cases() -> None:
    assert len(CASES) == 12
    assert f"The format has version {VERSION}." in PAGE
