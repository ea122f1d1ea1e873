"""What a session needs, known before Spark is loaded.

Spark comes with the extra `headgate[spark]`; all else works without it.
"""

from __future__ import annotations

import importlib.util
import re

from headgate.errors import MachineError

PACKAGES = ("pyspark", "pandas")
"""What the extra brings; pyspark hands Arrow batches over through pandas."""
ADVICE = "this needs Spark: install it with pip install 'headgate[spark]'"
_MASTER = re.compile(r"(local(-cluster)?(\[[^]]+\])?|yarn)\Z|(spark|k8s)://.")


def need_spark() -> None:
    """Refuse to go on where Spark is not installed; loads nothing."""
    if missing():
        raise MachineError(ADVICE)


def check_master(master: str) -> None:
    """Refuse a master that is none, or none that Headgate can use."""
    if not _MASTER.match(master):
        what = "a Spark Connect server, which" if master.startswith("sc://") else "one that"
        raise MachineError(
            f"master {master!r} is {what} Headgate cannot use: "
            "it can use local[N], spark://host:port, yarn or k8s://host:port"
        )


def missing() -> list[str]:
    """List the packages of the extra that are not installed."""
    return [name for name in PACKAGES if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
