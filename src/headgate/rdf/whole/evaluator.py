"""Whole queries asked of events, in a process of their own, each within a time.

A query that takes too long or ends the process is given up, told by the reason, and the others are asked in a
new one. Each that is given up halves the time of those that follow it for the same event.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headgate.errors import EventError
from headgate.rdf.events.isolation import Isolated, LostError, WorkerProcess
from headgate.rdf.events.worker import pack
from headgate.rdf.whole.worker import ASKS, GIVES, Answer, Event, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 0.5
"""For one query of one event, by the clock and then by the processor."""
TIMES = 10
"""How many times as long all queries of one event may take together; then each has the least."""
LEAST_SECONDS = 0.05
"""What every query of an event has, however much others have taken."""
MEMORY = 1 << 30
_ANSWER: msgspec.msgpack.Decoder[bool | str | Answer] = msgspec.msgpack.Decoder(bool | str | Answer)


class Seen(NamedTuple):
    """What queries see of an event: its lines, and those of the taxonomy above it if one walks there."""

    lines: bytes
    above: bytes | None


class GivenUpError(EventError):
    """A query that has no answer: it takes too long, or cannot be evaluated."""


class Evaluator(Isolated):
    """A process that evaluates queries."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        super().__init__()
        self._seconds = seconds
        self._memory = memory

    def ask(self, seen: Seen, questions: Sequence[tuple[str, bytes]]) -> list[bool | str]:
        """Tell of each query whether it has an answer, or why nobody knows.

        A query comes with the lines of the taxonomy above its own terms.
        """
        asked = [Question(ASKS, text, more) for text, more in questions]
        return [each if isinstance(each, bool | str) else True for each in self._answers(seen, asked)]

    def give(self, seen: Seen, text: str, more: bytes, limit: int) -> Answer:
        """Return the answer of a query, at most so many rows of it; raises `GivenUpError`."""
        (found,) = self._answers(seen, [Question(GIVES, text, more, limit)])
        if isinstance(found, str):
            raise GivenUpError(found)
        assert isinstance(found, Answer)
        return found

    def refusal(self, text: str) -> str:
        """Say why a query cannot be evaluated, found by asking it of an event without triples."""
        (found,) = self._answers(Seen(b"", None), [Question(ASKS, text)])
        return found if isinstance(found, str) else ""

    def _answers(self, seen: Seen, questions: Sequence[Question]) -> list[bool | str | Answer]:
        answers: list[bool | str | Answer] = []
        suspect, seconds = -1, self._seconds
        with self._lock:
            until = time.monotonic() + TIMES * self._seconds
            while len(answers) < len(questions):
                try:
                    self._ask(seen, questions, answers, seconds, until)
                except LostError as lost:
                    self._stop()
                    if lost.guilty or len(answers) == suspect:
                        answers.append(f"{lost}; send smaller events, or narrow the query")
                        seconds = max(seconds / 2, LEAST_SECONDS)
                    else:
                        suspect = len(answers)
                except BaseException:
                    # An interruption: the answer to this question must not be taken for the next one's.
                    self._stop()
                    raise
        return answers

    def _ask(
        self,
        seen: Seen,
        questions: Sequence[Question],
        answers: list[bool | str | Answer],
        seconds: float,
        until: float,
    ) -> None:
        """Ask what has no answer yet, and append what comes back, as far as it comes."""
        if self._process is None:
            self._process = WorkerProcess("headgate.rdf.whole.worker", "the evaluator", self._memory)
        left = questions[len(answers) :]
        self._process.send(pack(Event(seen.lines, seen.above, list(left))), self._seconds)
        for _ in left:
            patience = max(LEAST_SECONDS, min(seconds, until - time.monotonic()))
            answers.append(_ANSWER.decode(self._process.receive(patience)))


EVALUATOR = Evaluator()
"""The one that all indexes of this process ask."""
