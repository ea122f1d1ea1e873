"""Ids: sorted, distinct, of one type, from Python or Arrow."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.ids import Ids
from headgate.errors import SubscriptionError


@given(st.sets(st.integers(-(2**63), 2**63 - 1)) | st.sets(st.text()))
def test_ids_are_sorted_and_found(given_ids: set[Any]) -> None:
    ids = Ids.of(given_ids)
    assert list(ids) == sorted(given_ids)
    assert [ids.place(identity) for identity in ids] == list(range(len(ids)))
    again = Ids.from_arrow(ids.to_arrow())
    assert list(again) == list(ids)
    assert again.numbered is ids.numbered


@pytest.mark.parametrize(
    ("given_ids", "reason"),
    [
        ([1, 2, 1], "id 1 is given 2 times"),
        (["a", "a", "b"], "id 'a' is given 2 times"),
        ([1, "a"], "some ids are text and some are numbers"),
        ([2**63], "does not fit into 64 bits"),
        ([True], "id True is not usable"),
        ([1.5], "id 1.5 is not usable"),
        (["a", "\ud800"], "lone surrogate"),
        (["a", None], "id None is not usable"),
    ],
)
def test_unusable_ids_are_refused(given_ids: list[Any], reason: str) -> None:
    with pytest.raises(SubscriptionError, match=re.escape(reason)):
        Ids.of(given_ids)


class _Text(str):
    __slots__ = ()


def test_kinds_of_text_and_numbers_are_taken() -> None:
    assert list(Ids.of([_Text("b"), _Text("a")])) == ["a", "b"]
    assert list(Ids.of([])) == list(Ids.from_arrow(pa.array([], pa.string()))) == []
