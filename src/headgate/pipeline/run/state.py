"""What is remembered of finished steps, and one run of a directory at a time.

    DIRECTORY/.headgate/
      state.json    for each finished step: what was asked, its inputs, its outputs, and what came of it
      lock          held while a run is going on

A step is done if what is asked is what was asked, and its inputs and outputs are what they were. The file is
written beside its place and renamed after every step, so it holds a step as a whole or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.machine import put_file
from headgate.core.snapshot import MANIFEST, is_snapshot
from headgate.core.versions.current import resolved
from headgate.errors import SnapshotError, TableError
from headgate.pipeline.run.plan import named
from headgate.tables.change_set import finish
from headgate.tables.places import is_pattern, is_remote, local, roots_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headgate.pipeline.run.plan import Step


LOCK = "lock"


@contextmanager
def locked(directory: Path) -> Iterator[int | None]:
    """Hold a directory; yields the process that held it and did not come to its end, if there was one.

    The system frees the lock of a process that dies, however it dies, so what it left is taken over at once.
    """
    lock = directory / HOME / LOCK
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another"
            raise TableError(
                f"{directory} is in use by another run (process {holder}): wait for it, or choose another "
                "pipeline.directory"
            ) from None
        file.seek(0)
        before = file.read().strip()
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield int(before) if before.isdigit() else None
        finally:
            # Nothing is left to be taken over; the lock itself goes when the file is closed.
            file.truncate(0)


def remove_leftovers(outputs: Iterable[str], process: int) -> None:
    """Remove what a process that died was writing beside outputs: jobs name such places after themselves.

    What it had written whole and was about to move is moved.
    """
    for path in outputs:
        if is_remote(path):
            continue
        finish(path)
        path_of = Path(os.path.abspath(local(path)))  # noqa: PTH100 -- resolve() would follow a link
        leftovers = [
            each
            for folder in {path_of.parent, path_of.resolve().parent}
            for each in (folder.glob(f".{_literal(path_of.name)}.{process}.*") if folder.is_dir() else ())
        ]
        # A new version of a snapshot is written among the others.
        leftovers += path_of.glob(f".*.{process}.*") if path_of.is_dir() else ()
        for each in leftovers:
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """Write a name so that it stands for itself in a pattern."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


HOME, STATE = ".headgate", "state.json"
FORMAT, VERSION = "headgate-run", 1
MISSING = "missing"
REMOTE = "remote"
"""The stamp of what lies on another file system, which is not looked at: it is never the same."""


@dataclass(frozen=True)
class Record:
    """A finished step."""

    fingerprint: str
    inputs: dict[str, str]
    """Stamps by place."""
    outputs: dict[str, str]
    result: dict[str, Any]
    """What came of it: counts, seconds and the like."""
    seconds: float
    ended: str
    """When, in ISO 8601."""


@dataclass
class RunState:
    """The finished steps of a pipeline's directory, by name; and one that was begun and not finished."""

    directory: Path
    steps: dict[str, Record] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    """Outputs of a step that has begun: what lies there is ours, and may be half of it."""

    @classmethod
    def open(cls, directory: Path) -> RunState:
        """Read what is remembered of a directory; nothing, if nothing is. Refuses what it does not know."""
        path = directory / HOME / STATE
        try:
            known = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return cls(directory)
        except (OSError, ValueError) as error:
            raise TableError(f"{path} cannot be read ({error}): run with --fresh to start again") from None
        if not isinstance(known, dict) or known.get("format") != FORMAT or known.get("version") != VERSION:
            raise TableError(f"{path} is not of this version of Headgate: run with --fresh to start again")
        steps = {name: Record(**record) for name, record in known["steps"].items()}
        return cls(directory, steps, list(known["begun"]))

    def save(self) -> None:
        """Write it beside its place and rename it."""
        path = self.directory / HOME / STATE
        path.parent.mkdir(parents=True, exist_ok=True)
        steps = {name: asdict(record) for name, record in self.steps.items()}
        remembered = {"format": FORMAT, "version": VERSION, "begun": self.begun, "steps": steps}
        write_whole(path, json.dumps(remembered, indent=1, default=str) + "\n")

    def why_not_done(self, step: Step) -> str | None:
        """Say why a step must be done; None if it is done and nothing has changed."""
        record = self.steps.get(step.name)
        if record is None:
            return "it was not done before"
        if record.fingerprint != step.fingerprint(self.directory):
            return "what is asked has changed"
        for what, places, before in (
            ("input", step.inputs, record.inputs),
            ("output", step.outputs, record.outputs),
        ):
            for path in places.values():
                name, now = named(path, self.directory), stamp(path)
                if now == REMOTE:
                    return f"{path} is on another file system, which is not checked"
                if now == MISSING:
                    return f"{path} is missing"
                if before.get(name) != now:
                    return f"the {what} {path} has changed"
        return None

    def begin(self, step: Step) -> None:
        """Note that a step's outputs are about to be written."""
        self.steps.pop(step.name, None)
        self.begun = [named(path, self.directory) for path in step.outputs.values()]
        self.save()

    def finish(
        self, step: Step, inputs: Mapping[str, str], result: dict[str, Any], seconds: float, ended: str
    ) -> None:
        """Note that a step is done; `inputs` are the stamps from before it began."""
        self.steps[step.name] = Record(
            step.fingerprint(self.directory), dict(inputs), self.stamps(step.outputs), result, seconds, ended
        )
        self.begun = []
        self.save()

    def stamps(self, places: Mapping[str, str]) -> dict[str, str]:
        """Stamp places, by their names."""
        return {named(path, self.directory): stamp(path) for path in places.values()}

    def clear_halves(self) -> None:
        """Remove tables that a step which did not finish has half removed or half written."""
        for name in self.begun:
            path = local(name if is_remote(name) else os.path.normpath(self.directory / name))
            if path.suffix == ".parquet" and path.is_dir() and not (path / "_SUCCESS").exists():
                shutil.rmtree(path)
        self.begun = []


def stamp(path: str) -> str:
    """Tell one content of a place from another: by size and time, a snapshot by its checksums and sizes."""
    if is_remote(path):
        return REMOTE
    if is_pattern(path) and (roots := roots_of(path)):
        stamps = "\n".join(f"{each}\0{stamp(str(each))}" for each in roots)
        return f"pattern {hashlib.sha256(stamps.encode()).hexdigest()[:32]}"
    local_path = local(path)
    if local_path.is_file():
        about = local_path.stat()
        return f"file {about.st_size} {about.st_mtime_ns}"
    if not local_path.is_dir():
        return MISSING
    if is_snapshot(local_path):
        with suppress(SnapshotError):
            local_path = resolved(local_path)
    snapshot = (local_path / MANIFEST).is_file()
    digest = hashlib.sha256()
    for file in sorted(local_path.rglob("*")):
        inside = file.relative_to(local_path)
        if file.is_dir() or any(part.startswith(".") for part in inside.parts):
            continue
        about = file.stat()
        # Every byte of a snapshot is covered by the checksum in its manifest.
        content = file.read_text("utf-8", "replace")[:80] if snapshot and file.name == MANIFEST else ""
        time = "" if snapshot else about.st_mtime_ns
        digest.update(f"{inside}\0{about.st_size}\0{time}\0{content}\n".encode())
    return f"{'snapshot' if snapshot else 'folder'} {digest.hexdigest()[:32]}"


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place and rename it: others see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    put_file(path, text.encode())
