"""The command that prints statistics of workloads."""

from __future__ import annotations

import sys

import pytest

from headgate.workloads.__main__ import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run the command in this process."""
    monkeypatch.setattr(sys, "argv", ["workloads", *arguments])
    main()


def test_it_prints_a_column_for_each_workload(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "negations", "ranges", "--subscriptions", "2000", "--events", "5")
    lines = [line.rsplit(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["negations", "ranges"]
    table = {label: (left, right) for label, left, right in lines[1:]}
    assert table["filters with ranges only"][1] == "1"
    assert float(table["matches an event"][0]) > float(table["matches an event"][1])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["advertising"], "no workload is named advertising; there are equality, mixed,"),
        (["mixed", "--events", "0"], "there must be a subscription and an event at least"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, *arguments)
    assert complaint in capsys.readouterr().err
