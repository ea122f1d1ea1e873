"""What is asked of a run, besides what the file says; this module loads nothing large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.settings import Request, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Run(Request):
    """What is asked of a run, besides what the file says."""

    dry_run: bool = setting(
        "check everything, print the plan and sizes, and do nothing",
        False,
        more="The first rows of each table are read. It starts no Spark and writes nothing.",
    )
    fresh: bool = setting("do everything again, also what is done already", False)
    until: str | None = setting(
        "end after this step, such as `compile` or `match.best`; `match` is the last of them",
        metavar="STEP",
        more="There is no report then.",
    )
    overrides: Mapping[str, str] = setting(
        "a value in place of what the file says",
        {},
        option="--set",
        metavar="TABLE.KEY=VALUE",
        more="Values are written as in the file, and text needs no quotes.",
    )
