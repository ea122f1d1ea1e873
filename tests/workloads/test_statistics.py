"""The command that prints statistics of workloads."""

from __future__ import annotations

import sys

import pytest

from benchmarks.workloads import main


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


def test_it_prints_the_exchange_beside_its_paper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "exchange", "--events", "2")
    shape, selectivities, scales = capsys.readouterr().out.split("\n\n")
    rows = {line[:30].strip(): line[30:].split() for line in shape.splitlines()}
    assert rows[""] == ["paper", "here"]
    assert rows["components"] == ["70,969", "70,969"]
    table = [line.split() for line in selectivities.splitlines()]
    assert table[1] == ["1/16", "1/16", "1/8", "1/8", "1/4", "1/4", "1/2", "1/2", "1", "1"]
    assert (table[2][0], table[2][1], table[2][-2:]) == ("valid", "693", ["11,086", "11,086"])
    assert [row.split()[0] for row in scales.splitlines()[2:]] == ["valid", "reached", "passed", "edges"]


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
