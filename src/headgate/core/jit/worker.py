"""One process that compiles kernels: reads lines `kernel<TAB>signature`, answers each with a JSON line."""

from __future__ import annotations

import json
import logging
import sys
import time
from importlib import import_module
from typing import Any

from headgate.core.jit.notation import parse


def main() -> None:
    """Compile what standard input names until it ends."""
    # Whoever started this process tells how far it is.
    logging.getLogger("headgate.kernels").setLevel(logging.ERROR)
    for line in sys.stdin:
        kernel, _, args = line.rstrip("\n").partition("\t")
        began = time.process_time()
        problem = compile_kernel(kernel, args)
        answer = {"seconds": round(time.process_time() - began, 3), "problem": problem}
        print(json.dumps(answer), flush=True)


def compile_kernel(kernel: str, args: str) -> str:
    """Compile a kernel for a signature, or find it compiled; say in one line why it cannot be."""
    module, _, name = kernel.partition(":")
    try:
        found: Any = getattr(import_module(module), name)
        found.compile(parse(args))
    except (ImportError, AttributeError, ValueError) as error:
        return f"{kernel} is not as signatures.json says: {error}"
    return ""


if __name__ == "__main__":
    main()
