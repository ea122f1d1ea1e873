"""Every failure of a stream is one line: what, where, why, what would be right."""

from __future__ import annotations

import tempfile
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.machine import disk_error, full_at, fullest, put_file, says_full
from headgate.errors import HeadgateError, MachineError
from headgate.stream.settings import is_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.stream.settings import StreamSettings

FAILURE = "failure.txt"
"""Where in the state the traceback of a defect is, for whoever mends it."""
_LONGEST = 300


@contextmanager
def one_line(settings: StreamSettings) -> Iterator[None]:
    """Turn whatever ends a stream into one line."""
    try:
        yield
    except (HeadgateError, ImportError) as error:
        # What Java cannot write does not say where that was.
        if not (isinstance(error, HeadgateError) and error.full):
            raise
        raise full_at(fullest(places_of(settings))) from error
    except OSError as error:
        raise disk_error(error) from error
    except MemoryError as error:
        raise MachineError(
            "the stream ran out of memory: give it more, or smaller batches (--max-files, --max-bytes, "
            "--max-rows), then run the same command again"
        ) from error
    except Exception as error:  # what is left is a defect, and nobody can read its traceback in a terminal
        text = _text(error)
        if says_full(text):
            raise full_at(fullest(places_of(settings))) from error
        place = Path(settings.state).absolute() / FAILURE
        place.parent.mkdir(parents=True, exist_ok=True)
        put_file(place, text.encode(errors="backslashreplace"))
        raise HeadgateError(
            f"the stream ended by a defect of Headgate, {_reason(error)}; where it came from is in {place}: "
            "run the same command again, and report it with that file if it comes again"
        ) from error


def places_of(settings: StreamSettings) -> list[Path]:
    """List the places that a stream and Spark write to on this machine."""
    # Spark's notes first: what is full and said by Java is theirs, if they are on a disk with others.
    named = [f"{settings.state}/spark", settings.state, settings.dead, settings.rejected, settings.output]
    places = [Path(each).absolute() for each in named if not is_broker(each)]
    return [*places, Path(tempfile.gettempdir())]


def _text(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def _reason(error: Exception) -> str:
    """Say what was raised: of an error in a worker, the last line of its own traceback."""
    text = str(error)
    if "Traceback (most recent call last)" in text:
        # Java adds lines of its own after it.
        said = text.rpartition("Traceback (most recent call last)")[2].splitlines()[1:]
        kept = [line for line in said if line and not line.startswith((" ", "\t"))]
        return f"in a worker: {kept[0]}"[:_LONGEST] if kept else "in a worker"
    return f"{type(error).__name__}: {' '.join(text.split())}"[:_LONGEST]
