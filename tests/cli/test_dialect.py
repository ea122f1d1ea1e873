"""`headgate explain --dialect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.running import Command

CALL = "superset(tags, 'new')"


def test_a_filter_of_another_dialect(headgate: Command) -> None:
    ran = headgate("explain", "--filter", CALL, "--dialect", "labels", "--event", '{"tags": ["red"]}')
    assert (ran.code, ran.err) == (0, "")
    forall = "forall(tags, x -> x IS NULL OR x IN ('new'))"
    assert ran.out.splitlines() == [
        "no match",
        f'  failed  {"tags IS NULL":{len(forall)}}   tags = ["red"] (the attribute is not NULL)',
        f"  failed  {forall}   tags = [\"red\"] (the element 'red' is not in the list)",
        "nearest miss: tags IS NULL",
        "indexed only in part, tags IS NULL: it is checked for every event",
        f"verified: {forall}",
    ]


def test_sql_is_the_default(headgate: Command) -> None:
    ran = headgate("explain", "--filter", CALL, "--event", "{}")
    assert ran.code == 1
    assert "there is no function superset" in ran.complaint


def test_usage(headgate: Command) -> None:
    ran = headgate("explain", "--filter", CALL, "--dialect", "graph", "--event", "{}")
    assert ran.code == 2
    ran = headgate("explain", "--snapshot", "s", "--why-not", "--dialect", "labels", "--event", "{}")
    assert ran.code == 2
    assert "--dialect goes with --filter" in ran.err
