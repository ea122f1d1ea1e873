"""The one place that calls HiGHS: arrays in, arrays out, with a time limit and a word every two seconds.

Column-wise matrices go over as arrays; no modelling objects are made. Python is called back from within the
solver, so that progress can be told and Ctrl-C works.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.machine import need
from headgate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Bools, Floats64, Ints32


EVERY = 2.0
"""Seconds between two words about the same step."""


class Watch:
    """Counts the seconds of one solve, and reports to whoever asked for progress."""

    def __init__(self, limit: float, progress: Callable[[str], None] | None = None) -> None:
        self._begun = time.monotonic()
        self._limit = limit
        self._progress = progress
        self._said = self._begun

    def seconds(self) -> float:
        """Return how long it took until now."""
        return time.monotonic() - self._begun

    def left(self) -> float:
        """Return how many seconds are left, at least 0."""
        return max(0.0, self._limit - self.seconds())

    def say(self, text: str) -> None:
        """Report the end of a step, if the whole takes long enough for anybody to wonder."""
        if self._progress is not None and self.seconds() >= EVERY:
            self._said = time.monotonic()
            self._progress(text)

    def tick(self, text: Callable[[], str]) -> None:
        """Report from within a step, at most every two seconds; the text is made only then."""
        if self._progress is not None and time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            self._progress(text())


SOLVED = "solved"
INFEASIBLE = "infeasible"
STOPPED = "stopped"

_ONE_BY_ONE = threading.Lock()
"""HiGHS keeps one pool of threads for the whole process: two solves at once would fight over it."""


class Matrix(NamedTuple):
    """A program for HiGHS, column by column: `lower <= A x <= upper`, `0 <= x <= most`, minimise `costs x`.

    Columns below `whole` take whole numbers only.
    """

    costs: Floats64
    most: Floats64
    starts: Ints32
    rows: Ints32
    amounts: Floats64
    lower: Floats64
    upper: Floats64
    whole: int


class Outcome(NamedTuple):
    """How HiGHS ended: SOLVED, INFEASIBLE or STOPPED, with what it has by then.

    `values` are those of the columns, None if there are none to be used; `duals` those of the rows (only of a
    relaxation); `bound` is what nothing is below.
    """

    status: str
    values: Floats64 | None
    duals: Floats64
    bound: float
    iterations: int


class Start(NamedTuple):
    """Where simplex starts: which columns and rows are basic; all others are at their lower ends.

    Rows that are not basic and have no lower end are at the upper one.
    """

    columns: Bools
    rows: Bools


def relax(matrix: Matrix, start: Start, watch: Watch, step: str) -> Outcome:
    """Solve without whole numbers, by dual simplex from a start."""
    import highspy

    solver, listener = _solver(matrix, watch, step, whole=False)
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("time_limit", max(0.01, watch.left()))
    status = highspy.HighsBasisStatus
    basis = highspy.HighsBasis()
    basis.col_status = [status.kBasic if basic else status.kLower for basic in start.columns.tolist()]
    ends = np.isfinite(matrix.lower)
    basis.row_status = [
        status.kBasic if basic else status.kLower if end else status.kUpper
        for basic, end in zip(start.rows.tolist(), ends.tolist(), strict=True)
    ]
    basis.valid = True
    solver.setBasis(basis)
    if not listener.run(solver):
        raise PlanError(f"{step}: the solver failed: its numbers may be too far apart in size")
    ended = solver.getModelStatus()
    info, solution = solver.getInfo(), solver.getSolution()
    if ended == highspy.HighsModelStatus.kInfeasible:
        return Outcome(INFEASIBLE, None, np.zeros(0), np.inf, info.simplex_iteration_count)
    duals = np.array(solution.row_dual, np.float64) if solution.dual_valid else np.zeros(0)
    if ended == highspy.HighsModelStatus.kOptimal:
        values = np.array(solution.col_value, np.float64)
        return Outcome(SOLVED, values, duals, info.objective_function_value, info.simplex_iteration_count)
    return Outcome(STOPPED, None, duals, -np.inf, info.simplex_iteration_count)


def branch(
    matrix: Matrix,
    watch: Watch,
    step: str,
    *,
    gap: float = 0.0,
    seconds: float | None = None,
    first: Floats64 | None = None,
) -> Outcome:
    """Solve with whole numbers, up to a gap or a time; `first` is a solution that is known."""
    import highspy

    solver, listener = _solver(matrix, watch, step, whole=True)
    limit = watch.left() if seconds is None else min(seconds, watch.left())
    solver.setOptionValue("time_limit", max(0.01, limit))
    solver.setOptionValue("mip_rel_gap", gap)
    solver.setOptionValue("mip_abs_gap", 0.0)
    _tolerate(solver, 1e-9)
    if first is not None:
        known = highspy.HighsSolution()
        known.col_value = first.tolist()
        solver.setSolution(known)
    if not listener.run(solver):
        # Rarely, relaxations within cannot be solved that precisely.
        _tolerate(solver, 1e-7)
        if not listener.run(solver):
            return Outcome(STOPPED, None, np.zeros(0), -np.inf, 0)
    ended = solver.getModelStatus()
    info, solution = solver.getInfo(), solver.getSolution()
    if ended == highspy.HighsModelStatus.kInfeasible:
        return Outcome(INFEASIBLE, None, np.zeros(0), np.inf, info.simplex_iteration_count)
    usable = (
        solution.value_valid and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    )
    values = np.array(solution.col_value, np.float64) if usable else None
    done = SOLVED if ended == highspy.HighsModelStatus.kOptimal else STOPPED
    bound = info.mip_dual_bound if matrix.whole else info.objective_function_value
    return Outcome(done, values, np.zeros(0), bound, info.simplex_iteration_count)


def _tolerate(solver: Any, tolerance: float) -> None:
    for name in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        solver.setOptionValue(name, tolerance)


class _SolverListener:
    """Runs a solver and listens; what is raised meanwhile stops the solver and is raised again after."""

    def __init__(self, watch: Watch, step: str) -> None:
        self._watch = watch
        self._step = step
        self._raised: BaseException | None = None

    def hear(self, event: Any) -> None:
        """Take a call from within the solver."""
        try:
            self._watch.tick(lambda: self._words(event.data_out))
        except BaseException as error:  # noqa: BLE001 -- nothing may pass the solver's frames; `run` raises it
            self._raised = error
        if self._raised is not None:
            event.interrupt()

    def run(self, solver: Any) -> bool:
        """Run to the end; say whether the solver got through."""
        import highspy

        with _ONE_BY_ONE:
            status = solver.run()
        if self._raised is not None:
            raise self._raised
        return bool(status != highspy.HighsStatus.kError)

    def _words(self, data: Any) -> str:
        words = f"{self._step}: {self._watch.seconds():.0f} s"
        if data.simplex_iteration_count > 0:
            words += f", {data.simplex_iteration_count:,} pivots"
        return words


def _solver(matrix: Matrix, watch: Watch, step: str, *, whole: bool) -> tuple[Any, _SolverListener]:
    """Make a solver and give it the arrays."""
    need("plan")
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    lp = highspy.HighsLp()
    lp.num_col_ = len(matrix.costs)
    lp.num_row_ = len(matrix.lower)
    lp.col_cost_ = matrix.costs
    lp.col_lower_ = np.zeros(len(matrix.costs))
    lp.col_upper_ = matrix.most
    lp.row_lower_ = matrix.lower
    lp.row_upper_ = matrix.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_col_ = len(matrix.costs)
    lp.a_matrix_.num_row_ = len(matrix.lower)
    lp.a_matrix_.start_ = matrix.starts
    lp.a_matrix_.index_ = matrix.rows
    lp.a_matrix_.value_ = matrix.amounts
    if whole and matrix.whole:
        kinds = [highspy.HighsVarType.kInteger] * matrix.whole
        lp.integrality_ = kinds + [highspy.HighsVarType.kContinuous] * (len(matrix.costs) - matrix.whole)
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise PlanError(
            f"{step}: the solver refused the program: the numbers in it are too large or too small"
        )
    ear = _SolverListener(watch, step)
    solver.cbSimplexInterrupt += ear.hear
    solver.cbMipInterrupt += ear.hear
    return solver, ear
