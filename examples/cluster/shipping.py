"""Workers that have the packages that Headgate needs, and not Headgate itself: it is shipped with the job.

zip         `spark.submit.pyFiles`: a zip file on Python's path; kernels are compiled once a machine
archive     `spark.archives`: Spark unpacks it on each worker; kernels come with it
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import SparkSession

import headgate
import headgate.spark as hg
from examples.cluster.standalone import Cluster
from headgate.spark.session.session import close_session, open_session

if TYPE_CHECKING:
    from examples.cluster import tables

PACKAGE = Path(headgate.__file__).parent
ZIP, ARCHIVE = FORMS = ("zip", "archive")
UNPACKED = "headgate-package"


class Shipped(NamedTuple):
    """How matching went: its rows, the seconds of two runs, and the kernels that workers compiled."""

    rows: list[tuple[object, ...]]
    first: float
    second: float
    compiled: int


def local(place: tables.Place, snapshot: str) -> list[tuple[object, ...]]:
    """Compile and match on this machine, where Headgate is installed."""
    session = open_session("local[2]")
    try:
        hg.compile(session.read.parquet(place.subscriptions), snapshot, ranked=False)
        return _matched(session, place, snapshot)
    finally:
        close_session(session)


def ship(here: Path, place: tables.Place, snapshot: str, form: str) -> Shipped:
    """Match on a cluster whose workers get Headgate from the job, with a session as anybody makes it."""
    cache = here / "cache"
    with Cluster(here / "cluster") as cluster:
        # The Python of workers: the setting `spark.pyspark.python` counts for spark-submit only.
        os.environ["PYSPARK_PYTHON"] = str(bare_python(here / "bare"))
        settings = cluster.settings() | {
            # What is compiled is looked at, and so must not be where other runs have left it.
            "spark.executorEnv.XDG_CACHE_HOME": str(cache),
        }
        if form == ZIP:
            settings["spark.submit.pyFiles"] = str(package(here / "headgate"))
        else:
            settings["spark.archives"] = f"{package(here / 'headgate', kernels=True)}#{UNPACKED}"
            settings["spark.executorEnv.PYTHONPATH"] = UNPACKED
        builder = SparkSession.builder.master(cluster.url).appName("shipping")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            begun = time.perf_counter()
            rows = _matched(session, place, snapshot)
            first = time.perf_counter() - begun
            begun = time.perf_counter()
            _matched(session, place, snapshot)
            second = time.perf_counter() - begun
        finally:
            session.stop()
    return Shipped(rows, first, second, len([*cache.rglob("*.nbc")]))


def package(place: Path, *, kernels: bool = False) -> Path:
    """Put the package into a zip file, with the kernels for this kind of processor or without."""
    shutil.copytree(PACKAGE, place / "headgate", ignore=shutil.ignore_patterns("__pycache__", "prebuilt"))
    if kernels:
        made = place / "headgate" / "core" / "jit" / "prebuilt"
        command = [str(Path(sys.executable).with_name("headgate")), "warm", "--quiet", "--copy-to", str(made)]
        subprocess.run(command, check=True, capture_output=True)
    return Path(shutil.make_archive(str(place), "zip", place))


def bare_python(place: Path) -> Path:
    """Make a Python that has all packages of this one but Headgate."""
    venv.create(place, symlinks=True)
    inside = next(place.glob("lib/python*/site-packages"))
    here = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    # Named in a file of another folder, a folder is only added: what its own files name is not.
    (inside / "packages.pth").write_text(f"{here}\n", "utf-8")
    found = place / "bin" / "python"
    asked = "import importlib.util as u; print(u.find_spec('numba') is not None, u.find_spec('headgate'))"
    told = subprocess.run([found, "-c", asked], check=True, capture_output=True, text=True, cwd=place).stdout
    if told.split() != ["True", "None"]:
        raise RuntimeError(f"{found} should have numba and not Headgate: {told.strip()}")
    return found


def _matched(session: SparkSession, place: tables.Place, snapshot: str) -> list[tuple[object, ...]]:
    found = hg.match(session.read.parquet(place.events), snapshot)
    return sorted(tuple(row) for row in found.collect())
