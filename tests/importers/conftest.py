"""What tests of importers share."""

from __future__ import annotations

from tests.cli.conftest import headgate

__all__ = ["headgate"]
