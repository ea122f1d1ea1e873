"""Scores that depend on the event: their arithmetic, their bounds, and the best k by them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.contents.scores import NEGATE, NUMBER, TERM, Form, Step
from headgate.ranking.scores.arithmetic import Range, most, scores

PLAIN = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.3, 7.5, -2.25, 1e300, -1e300, 1e-300, 5e-324])
TERMS = st.one_of(PLAIN, st.sampled_from([math.nan, math.inf, -math.inf]), st.floats())


@st.composite
def forms(draw: st.DrawFn) -> Form:
    steps: list[Step] = []
    numbers = terms = depth = 0
    for _ in range(draw(st.integers(1, 9))):
        what = draw(st.sampled_from([NUMBER, TERM, NEGATE, "+", "-", "*", "/", "least", "greatest"]))
        if what == NEGATE and depth:
            steps.append(Step(NEGATE))
        elif what not in (NUMBER, TERM, NEGATE) and depth > 1:
            steps.append(Step(what))
            depth -= 1
        elif what == TERM:
            steps.append(Step(TERM, terms))
            terms, depth = terms + 1, depth + 1
        else:
            steps.append(Step(NUMBER, numbers))
            numbers, depth = numbers + 1, depth + 1
    steps += [Step("+")] * (depth - 1)
    return Form(tuple(steps), tuple(f"t{place}" for place in range(terms)), numbers)


def slowly(form: Form, numbers: list[float], terms: list[float]) -> float:
    """Compute one score, number by number."""
    stack: list[float] = []
    for what, place in form.steps:
        if what == NUMBER:
            stack.append(numbers[place])
        elif what == TERM:
            stack.append(terms[place])
        elif what == NEGATE:
            stack.append(-stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            if what in ("least", "greatest"):
                there = [each for each in (left, right) if not math.isnan(each)]
                chosen = min if what == "least" else max
                stack.append(chosen(there) if there else math.nan)
            elif what == "/":
                stack.append(left / right if right else math.nan)
            else:
                with np.errstate(all="ignore"):
                    one, other = np.float64(left), np.float64(right)
                    stack.append(
                        float(one + other if what == "+" else one - other if what == "-" else one * other)
                    )
    return stack[0] if math.isfinite(stack[0]) else 0.0


@given(forms(), st.data())
def test_scores_and_bounds(form: Form, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 5))
    table = [data.draw(st.lists(PLAIN, min_size=rows, max_size=rows)) for _ in range(form.numbers)]
    numbers = np.array(table, np.float64).reshape(form.numbers, rows)
    terms = [data.draw(TERMS) for _ in form.terms]
    found = scores(form, numbers, np.array(terms, np.float64).reshape(-1, 1))
    assert found.tolist() == [slowly(form, numbers[:, row].tolist(), terms) for row in range(rows)]
    if form.numbers:
        block = Range(numbers.min(axis=1, keepdims=True), numbers.max(axis=1, keepdims=True))
        bound = most(form, block, np.array(terms, np.float64))
        assert found.max() <= bound[0]
