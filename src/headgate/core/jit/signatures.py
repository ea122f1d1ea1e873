"""The signatures of kernels that the product uses, and what meets one that is not among them.

`signatures.json` names each kernel that Python code of the product calls, and with which types (see
`notation.py`). Kernels that only other kernels call are compiled with these. `./dev signatures` writes the
file anew from what the tests call.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.jit.sources import PACKAGE, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE = PACKAGE / "core" / "jit" / "signatures.json"
MODE = "HEADGATE_SIGNATURES"
"""The environment's word: `strict` refuses signatures that are not in the file; a directory collects them."""
STRICT = "strict"


@cache
def known(file: Path = FILE) -> Mapping[str, frozenset[str]]:
    """Return the signatures that the product uses, by kernel (`module:name`)."""
    return {kernel: frozenset(listed) for kernel, listed in read_signatures(file).items()}


def rooms() -> list[str]:
    """Name the rooms that have kernels."""
    return sorted({kernel.split(".")[1] for kernel in known()})


def read_signatures(file: Path = FILE) -> dict[str, list[str]]:
    """Read a file of signatures; a tuple that stands in many of them is written once, as #number."""
    content = json.loads(read(file))
    tuples: list[str] = content["tuples"]

    def whole(text: str) -> str:
        return re.sub(r"#(\d+)", lambda found: whole(tuples[int(found[1])]), text)

    return {name: [whole(text) for text in listed] for name, listed in content["kernels"].items()}


def write_signatures(signatures: Mapping[str, Iterable[str]], file: Path = FILE) -> None:
    """Write a file of signatures, each named tuple once."""
    tuples: dict[str, int] = {}

    def folded(text: str) -> str:
        # From within: what is inside a tuple has a number before the tuple has.
        while inside := re.search(r"[\w.]+\.[\w]+\([^()]*\)", text):
            number = tuples.setdefault(inside[0], len(tuples))
            text = text[: inside.start()] + f"#{number}" + text[inside.end() :]
        return text

    kernels = {name: [folded(text) for text in sorted(set(signatures[name]))] for name in sorted(signatures)}
    content = {"tuples": list(tuples), "kernels": kernels}
    file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def meet(kernel: str, args: str) -> None:
    """Take note that a kernel is called with a signature, where the environment asks for it."""
    mode = os.environ.get(MODE)
    # A test, a doctest or a benchmark may call a kernel with any.
    if not mode or not _caller().startswith(f"{PACKAGE}{os.sep}"):
        return
    if mode != STRICT:
        with (Path(mode) / f"{os.getpid()}.txt").open("a", encoding="utf-8") as file:
            file.write(f"{kernel}\t{args}\n")
    elif args not in known().get(kernel, ()):
        raise RuntimeError(
            f"kernel {kernel} is called with a signature that is not in {FILE.name}: run ./dev signatures "
            f"({args})"
        )


def _caller() -> str:
    """Name the innermost file on the stack, without those of the compiler and of kernels."""
    frame = inspect.currentframe()
    while frame is not None:
        module, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
        if not module.startswith(("numba.", "contextlib", __package__)):
            return file
        frame = frame.f_back
    return ""


def collect(folder: Path) -> dict[str, set[str]]:
    """Gather what processes have written into a directory of signatures."""
    signatures: dict[str, set[str]] = {}
    for file in sorted(folder.glob("*.txt")):
        for line in file.read_text("utf-8").splitlines():
            kernel, _, args = line.partition("\t")
            signatures.setdefault(kernel, set()).add(args)
    return signatures


def main(folder: str, *more: str) -> None:
    """Write the file anew from a directory of signatures, or with `--add` add to it."""
    signatures = collect(Path(folder))
    if "--add" in more:
        for kernel, listed in read_signatures().items():
            signatures.setdefault(kernel, set()).update(listed)
    write_signatures(signatures)
    print(f"{FILE.name}: {sum(map(len, signatures.values()))} signatures of {len(signatures)} kernels")


if __name__ == "__main__":
    main(*sys.argv[1:])
