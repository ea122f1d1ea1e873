"""Near misses of ranked subscriptions: those of the same filters without ranks."""

from __future__ import annotations

import random

from headgate import Engine, Event


def test_ranks_change_nothing_but_the_order() -> None:
    rng = random.Random(5)
    rows = [
        {
            "id": f"s{n}",
            "filter": f"a = {rng.randrange(4)} AND b < {rng.randrange(9)} AND c > {rng.randrange(9)}",
        }
        for n in range(60)
    ]
    plain = Engine.build(rows)
    ranked = Engine.build([{**row, "score": rng.random()} for row in rows])
    for engine in (plain, ranked):
        engine.subscribe({"id": "late", "filter": "a = 1 AND b < 5 AND c > 3"})
        engine.unsubscribe("s7")
    for number in range(30):
        event = Event(str(number), {"a": rng.randrange(4), "b": rng.randrange(9), "c": rng.randrange(9)})
        found = [
            {each.id: [clause.text for clause in each.failed] for each in engine.index.why_not(event, 100)}
            for engine in (plain, ranked)
        ]
        assert found[0] == found[1]
        assert found[0]
        assert not set(found[0]) & set(plain.match(event))
        few = ranked.index.why_not(event, 5)
        assert [len(each.failed) for each in few] == sorted(len(each) for each in found[0].values())[:5]
