"""A source of events other than a folder: an object that says how it is addressed, checked and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.runtime.changes import Changes, ChangeSettings
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import Log


class Source:
    """A source. Its module loads nothing large; what does is loaded when it is asked for."""

    title: ClassVar[str]
    name: ClassVar[str]
    """How names of options begin that are for it, with a dot behind."""
    schemes: ClassVar[tuple[str, ...]]
    """How its addresses begin."""
    local: ClassVar[bool] = False
    """Whether a stream that ends reads it in this process. It must have a log."""

    def has(self, place: str | None) -> bool:
        """Tell whether an address is of this source."""
        return place is not None and place.startswith(self.schemes)

    def shared(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options for all addresses of this source."""
        prefix = f"{self.name}."
        return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}

    def check(self, settings: StreamSettings) -> None:
        """Refuse addresses that cannot be right, before any work; no server is asked."""

    def ask(self, settings: StreamSettings) -> None:
        """Ask the servers that a stream's settings name, before any work, whether all will go well."""

    def log(self, settings: StreamSettings) -> Callable[[], Log] | None:
        """Return what opens the log that `settings.events` names; None if only Spark's connector reads it."""

    def changes(self, settings: ChangeSettings) -> Changes:  # noqa: ARG002
        """Open the changes that `settings.changes` names; refuses if none can come from here."""
        raise TableError(
            f"changes of subscriptions come from a folder or from nats://, not from {self.title}"
        )
