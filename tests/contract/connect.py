"""DataFrames of Spark Connect as a surface.

A process is either a client of Spark Connect or has a Spark of its own: pyspark's functions decide that once.
So a process of its own is the client. It is asked by a line of JSON, and answers with one.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.contract.frames import Frames, pairs_in
from tests.contract.refusals import key_of

if TYPE_CHECKING:
    from tests.contract.surfaces import Match, Refusal
    from tests.contract.world import Question


class Client:
    """The process."""

    def __init__(self) -> None:
        # Whatever Spark this process has is none of its business.
        kept = {"SPARK_SUBMIT_OPTS"}
        env = {
            name: value
            for name, value in os.environ.items()
            if name in kept or not name.startswith(("PYSPARK", "SPARK_"))
        }
        env["PYSPARK_PYTHON"] = sys.executable
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.connect"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=Path(__file__).parents[2],
            text=True,
        )

    def ask(self, what: str, **given: Any) -> list[dict[str, Any]]:
        """Ask for rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"what": what, **given}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the client has ended"
        found = json.loads(line)
        assert isinstance(found, list), found
        return found

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()


@cache
def client() -> Client:
    """Start it when it is first needed, and end it with this process."""
    found = Client()
    atexit.register(found.close)
    return found


class Connect(Frames):
    """`headgate.spark` with a session of `SparkSession.builder.remote`."""

    name = "connect"

    def match(self, question: Question) -> Counter[Match]:
        """Ask for rows, or with a graph for arrays."""
        top, shape = question.top, "arrays" if self.world.graph else "rows"
        given: dict[str, Any] = {"shape": shape, "names": {"event_id": "event"}}
        if top is None:
            return pairs_in(client().ask("match", **self._told, **given))
        given |= {"k": top.k, "mode": top.mode, "factors": dict(top.factors) or None, **top.path._asdict()}
        return pairs_in(client().ask("top", **self._told, **given))

    def refused(self) -> Counter[Refusal]:
        """Ask for the rows that are no events."""
        rows = client().ask("refused", **self._told)
        return Counter((key_of(row["row"]), row["reason"]) for row in rows)

    @property
    def _told(self) -> dict[str, str]:
        return {"events": self._place, "snapshot": str(self._snapshot)}


def main() -> None:
    """Be the client."""
    # What Java and its server print is not an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from pyspark.sql import SparkSession

    import headgate.spark as hg
    from tests.conftest import SMALL_TABLES

    builder = SparkSession.builder.remote("local[1]")
    for name, value in SMALL_TABLES.items():
        if name.startswith("spark.sql."):
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    for line in sys.stdin:
        given = json.loads(line)
        ask = getattr(hg, given.pop("what"))
        found: Any
        try:
            frame = ask(session.read.parquet(given.pop("events")), given.pop("snapshot"), **given)
            found = [row.asDict(recursive=True) for row in frame.collect()]
        except Exception as error:  # noqa: BLE001 -- shown by who asked
            found = repr(error)
        answers.write(json.dumps(found, default=str) + "\n")
        answers.flush()
    session.stop()


if __name__ == "__main__":
    main()
