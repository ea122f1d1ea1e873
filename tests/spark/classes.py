"""How Java is started for tests, and an archive of Spark's classes to start it sooner.

`./dev` writes the archive once, into .venv. Without it everything works, and every Spark takes 6 s more.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.spark.files import put, put_lines

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
# Compile little, and start small programs the short way: Hadoop starts one for each right of a file.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
_SILENT = "-Xshare:auto -Xlog:disable -Xlog:all=off"
"""An archive that does not fit, of another Java perhaps, is passed over without a word."""


def java_options() -> dict[str, str]:
    """Return what makes every Java quick that tests start, here or in processes of their own."""
    kept = f" -XX:SharedArchiveFile={ARCHIVE} {_SILENT}" if ARCHIVE.is_file() else ""
    return {"SPARK_SUBMIT_OPTS": QUICK_JAVA + kept, "SPARK_LAUNCHER_OPTS": QUICK_JAVA}


def write_archive() -> None:
    """Let Spark do a little of all that tests do, and keep the classes that it loaded."""
    fresh = ARCHIVE.with_suffix(".new")
    options = f"{QUICK_JAVA} -XX:ArchiveClassesAtExit={fresh} {_SILENT}"
    os.environ.update(SPARK_SUBMIT_OPTS=options, SPARK_LAUNCHER_OPTS=QUICK_JAVA)
    from headgate.cli import cli
    from headgate.spark.session import session as sessions

    # Java writes it when it ends.
    sessions.PATIENCE = 300.0
    session = sessions.open_session("local[1,4]")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subscriptions = put_lines(folder / "subs.jsonl", [{"id": "s", "filter": "a > 1", "score": 1.0}])
        events = put_lines(folder / "in" / "events.jsonl", [{"id": n, "a": n} for n in range(3)])
        compiled = ["--subscriptions", subscriptions, "--output", f"{folder}/compiled", "--ranked"]
        table = put(folder / "events.csv", "id,a\n1,2\n")
        run = ["--snapshot", f"{folder}/compiled", "--quiet"]
        streamed = ["--output", f"{folder}/out", "--state", f"{folder}/state"]
        for line in (
            ["compile", *compiled, "--quiet"],
            *(
                ["match", *run, "--events", events, "--output", f"{folder}/m.{form}"]
                for form in ("jsonl", "csv", "parquet")
            ),
            ["match", *run, "--events", table, "--output", f"{folder}/best.jsonl", "--top", "1"],
            ["stream", *run, *streamed, "--events", f"{folder}/in", "--once"],
        ):
            # Else these tables are so small that no Spark is asked.
            cli.main([*line, "--engine", "spark"], standalone_mode=False)
    sessions.close_session(session)
    fresh.replace(ARCHIVE)


if __name__ == "__main__":
    if sys.argv[1:] == ["--options"]:
        print(java_options()["SPARK_SUBMIT_OPTS"])
    else:
        write_archive()
