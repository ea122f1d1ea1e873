"""What reports have in common."""

from __future__ import annotations

import pytest

from headgate.errors import HeadgateError
from headgate.report.runs.model import Histogram
from tests.report.runs import MATCHES


def test_histograms_hold_every_event() -> None:
    histogram = Histogram.of(MATCHES)
    assert sum(histogram.counts) == 4000
    assert histogram.edges[:2] == (0, 1)
    assert histogram.edges[-1] == max(MATCHES) + 1
    assert len(histogram.counts) <= 33
    with pytest.raises(HeadgateError, match="rising edges"):
        Histogram((0, 1), (1, 2))
    with pytest.raises(HeadgateError, match="rising edges"):
        Histogram((0, 0), (1,))
