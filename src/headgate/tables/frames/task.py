"""What workers must know to read events and to match them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from headgate.engine.question import ALL
from headgate.runtime.targets import opened

if TYPE_CHECKING:
    from headgate.engine.question import Question
    from headgate.runtime.engines import Runtime
    from headgate.runtime.targets import Openable, Sources, Target

ROWS, ARRAYS = SHAPES = ("rows", "arrays")
"""One row a match, or one row an event with all of its matches."""


class FrameTask(NamedTuple):
    """What workers must know."""

    group: Openable
    content: str
    form: str
    """How events come: one of the forms of `reading`."""
    numbered: bool
    """Whether ids of subscriptions are whole numbers."""
    content_type: str | None = None
    """The format of documents that name none."""
    sources: Sources | None = None
    """Where events may enter a graph, if there is one."""
    question: Question = ALL
    shape: str = ROWS
    keyed: bool = False
    """Whether events come with a number of their own, which goes with their matches."""
    exceeded: bool = False
    """Whether filters that are too expensive for an event are told among refused rows."""
    tells: bool = True
    """Whether rows that are no events are told: of several groups of shards, by one."""
    keep: tuple[str, ...] | None = None
    """What is wanted of `kept` beside matches: all of it, unless said."""
    mark: str = ""
    """What names mean to the filters, see `core/values.py`."""

    @classmethod
    def of(cls, target: Target, group: Openable, form: str) -> Self:
        """Ask a group of what was verified for events of some form."""
        return cls(group, target.content, form, target.numbered, mark=target.mark)

    @property
    def place(self) -> str:
        """Return what the subscriptions are called in messages."""
        return self.group.place

    def engines(self) -> Runtime:
        """Return what is asked."""
        return opened(self.group)
