"""The names that programs import: few, each with its page of help, and errors in a place of their own."""

from __future__ import annotations

import inspect

import pytest

import headgate
from headgate import errors

MOST = 21


def test_names_are_few_and_say_what_they_are() -> None:
    assert len(headgate.__all__) <= MOST
    assert headgate.__all__ == sorted(headgate.__all__, key=lambda name: (not name.isupper(), name))
    for name in headgate.__all__:
        assert inspect.getdoc(getattr(headgate, name)), name


def test_errors_are_in_a_place_of_their_own() -> None:
    assert [name for name in headgate.__all__ if name.endswith("Error")] == []
    for name in (*errors.__all__, "RecordIndex", "nonsense"):
        with pytest.raises(AttributeError, match=f"module 'headgate' has no attribute '{name}'"):
            getattr(headgate, name)


def test_all_errors_are_in_one_tree() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.HeadgateError)
        assert getattr(errors, name).__name__ in str(errors.__doc__)
