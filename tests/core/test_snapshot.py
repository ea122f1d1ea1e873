"""Snapshots: what is written is read, and nothing else is."""

from __future__ import annotations

import hashlib
import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headgate.core import snapshot as module
from headgate.core.snapshot import MANIFEST, is_snapshot, open_snapshot, write_snapshot
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ARRAYS: dict[str, NDArray[Any]] = {
    "keys": np.arange(1000, dtype=np.int64),
    "flags": np.array([1, 0, 1], np.uint8),
    "table": np.arange(12, dtype=np.float64).reshape(3, 4),
    "empty": np.zeros(0, np.int32),
    "no_rows": np.zeros((0, 4), np.int64),
}


def write(path: Path, arrays: dict[str, NDArray[Any]] = ARRAYS) -> None:
    write_snapshot(path, "records", arrays, counts={"filters": 3}, about={"source": "test"})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "snapshot"
    write(path)
    return path


def refused(path: Path, *, verify: bool = True) -> str:
    with pytest.raises(SnapshotError) as caught:
        open_snapshot(path, "records", verify=verify)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert "compile" in message or "give" in message, f"no advice: {message}"
    return message


def forge(path: Path, **changes: object) -> None:
    """Change the manifest and give it the right checksum."""
    manifest = json.loads((path / MANIFEST).read_text("utf-8"))
    manifest = {key: value for key, value in {**manifest, **changes}.items() if value is not None}
    del manifest["sha256"]
    rest = ",\n" + json.dumps(manifest, indent=1)[1:] + "\n"
    digest = hashlib.sha256(rest.encode()).hexdigest()
    (path / MANIFEST).write_text(f'{{"sha256": "{digest}"{rest}', "utf-8")


def test_round_trip(place: Path) -> None:
    found = open_snapshot(place, "records")
    assert found.counts == {"filters": 3}
    assert found.about == {"source": "test"}
    assert set(found.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert (found.arrays[name] == array).all()


def test_the_digest_names_the_content(tmp_path: Path) -> None:
    for name, source in (("a", 1), ("b", 1), ("c", 2)):
        write_snapshot(tmp_path / name, "records", ARRAYS, counts={}, about={"source": source})
    a, b, c = (open_snapshot(tmp_path / name, "records").digest for name in "abc")
    assert a == b != c


def test_arrays_are_mapped_and_read_only(place: Path) -> None:
    for name, array in open_snapshot(place, "records").arrays.items():
        assert not array.flags.writeable
        assert isinstance(array.base, np.memmap) is (array.size > 0), name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", [MANIFEST, *(f"{name}.npy" for name in ARRAYS)])
def test_a_truncated_file_is_refused(place: Path, name: str, verify: bool) -> None:
    whole = (place / name).read_bytes()
    for length in {0, 1, len(whole) // 2, len(whole) - 1}:
        (place / name).write_bytes(whole[:length])
        assert name in refused(place, verify=verify)


@pytest.mark.parametrize("name", [f"{name}.npy" for name in ARRAYS])
def test_a_flipped_byte_of_an_array_is_refused(place: Path, name: str) -> None:
    whole = (place / name).read_bytes()
    for position in {0, 5, 8, 10, 60, 127, len(whole) // 2, len(whole) - 1}:
        for bit in (1, 0x20, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            (place / name).write_bytes(damaged)
            assert f"{name} does not have its checksum" in refused(place)


def test_every_byte_of_the_manifest_counts(place: Path) -> None:
    whole = (place / MANIFEST).read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 7)
        (place / MANIFEST).write_bytes(damaged)
        assert MANIFEST in refused(place)


def test_bytes_added_are_refused(place: Path) -> None:
    for name in (MANIFEST, "keys.npy"):
        whole = (place / name).read_bytes()
        (place / name).write_bytes(whole + b"\n")
        assert name in refused(place, verify=False)
        (place / name).write_bytes(whole)


@pytest.mark.parametrize("name", [MANIFEST, *(f"{name}.npy" for name in ARRAYS)])
def test_a_missing_file_is_refused(place: Path, name: str) -> None:
    (place / name).unlink()
    assert name in refused(place, verify=False)


def test_without_checksums_a_damaged_header_is_still_our_error(place: Path) -> None:
    whole = (place / "keys.npy").read_bytes()
    outcomes = []
    for position in range(128):
        for mask in (0x01, 0x10, 0x55):
            damaged = bytearray(whole)
            damaged[position] ^= mask
            (place / "keys.npy").write_bytes(damaged)
            try:
                open_snapshot(place, "records", verify=False)
            except SnapshotError as error:
                outcomes.append(str(error))
    assert len(outcomes) > 200
    assert all("keys.npy cannot be read" in outcome for outcome in outcomes)


@pytest.mark.parametrize("version", [module.VERSION + 1, module.VERSION - 1, 99])
def test_another_version_is_refused(place: Path, version: int) -> None:
    forge(place, version=version)
    assert f"format version {version}, and this Headgate reads {module.VERSION}" in refused(place)


def test_a_newer_version_may_look_quite_different(place: Path) -> None:
    forge(place, version=module.VERSION + 1, room=None, files=None, counts=None)
    assert f"format version {module.VERSION + 1}" in refused(place)


@pytest.mark.parametrize("name", ["lucene", None])
def test_a_foreign_format_is_refused(place: Path, name: str | None) -> None:
    forge(place, format=name)
    assert "not a snapshot of Headgate" in refused(place)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"sha256": "', "\x00\xff", '{"name": "something else"}'])
def test_a_foreign_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text, "latin-1")
    assert "not a snapshot of Headgate" in refused(tmp_path)


def test_another_room_is_refused(place: Path) -> None:
    with pytest.raises(SnapshotError, match="is a snapshot of 'records', not of 'rdf'"):
        open_snapshot(place, "rdf")


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    assert "no manifest.json" in refused(tmp_path)
    assert "no such directory" in refused(tmp_path / "absent")
    (tmp_path / "file").write_text("text")
    assert "it is a file" in refused(tmp_path / "file")


def test_replacing_keeps_old_readers(place: Path) -> None:
    old = open_snapshot(place, "records")
    write(place, {"keys": np.arange(1000, 2000, dtype=np.int64)})
    new = open_snapshot(place, "records")
    assert old.arrays["keys"][999] == 999
    assert new.arrays["keys"][0] == 1000
    assert set(new.arrays) == {"keys"}
    assert [path.name for path in place.parent.iterdir()] == ["snapshot"]


def test_a_damaged_snapshot_may_be_replaced(place: Path) -> None:
    (place / "keys.npy").unlink()
    write(place)
    assert open_snapshot(place, "records").arrays["keys"][1] == 1


def test_an_empty_directory_may_be_filled_and_parents_are_made(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b" / "c"):
        write(path)
        assert is_snapshot(path)


def test_other_things_are_not_overwritten(tmp_path: Path) -> None:
    file, directory = tmp_path / "file", tmp_path / "directory"
    file.write_text("precious")
    directory.mkdir()
    (directory / "photo.jpg").write_text("precious")
    for path in (file, directory, file / "below"):
        with pytest.raises(SnapshotError, match=r"choose another place"):
            write(path)
    assert file.read_text() == "precious"
    assert (directory / "photo.jpg").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("step", ["_write_array", "_write_manifest", "force", "_swap"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, OSError])
def test_an_interrupted_write_leaves_the_old_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise failure("interrupted")

    monkeypatch.setattr(module, step, fail)
    with pytest.raises(SnapshotError if failure is OSError else failure, match="interrupted"):
        write(place, {"keys": np.zeros(1, np.int64)})
    assert open_snapshot(place, "records").arrays["keys"][1] == 1
    assert [path.name for path in place.parent.iterdir()] == ["snapshot"]


def test_a_failed_swap_puts_the_old_one_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = type(place).rename

    def fail(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):
            raise OSError("no space left")
        return rename(path, target)

    monkeypatch.setattr(type(place), "rename", fail)
    with pytest.raises(SnapshotError, match="no space left"):
        write(place, {"keys": np.zeros(1, np.int64)})
    assert open_snapshot(place, "records").arrays["keys"][1] == 1
    assert [path.name for path in place.parent.iterdir()] == ["snapshot"]


def test_readers_never_see_half_a_replacement(place: Path) -> None:
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set():
            try:
                arrays = open_snapshot(place, "records").arrays
                if not (arrays["keys"] == arrays["keys"][0] + np.arange(1000)).all():
                    wrong.append(arrays["keys"][0])
            except SnapshotError as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(10):
        write(place, {**ARRAYS, "keys": np.arange(start, start + 1000, dtype=np.int64)})
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
