"""The algorithms as loops over the rows of a stream, which a compiler turns into machine code.

Five thousand runs of an experiment are 160 million rows for each algorithm. Without numba the same loops run as plain
Python, slower and to the same result. A sketch is one array here, of counts and costs by row and column, as far as any key
reaches. `settings` are `Paper` and `Ours` of `algorithms`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from jettison.costs.residuals import DOUBT_ROWS
from jettison.costs.sketch import FORGOTTEN_BELOW, FloatArray
from jettison.lab.sim.load.workload import IntArray

Function = TypeVar("Function", bound=Callable[..., Any])

SKETCH, CONSTANT, EXACT = 0, 1, 2
"""Where the paper's shedder has its costs from."""
LITERAL, IN_TURN, IMMEDIATE = 0, 1, 2
"""How its estimate of the operator's clock is put right. As listed: the difference found when the request reaches the
head of the queue is added, whatever else was corrected meanwhile, so overlapping requests count a correction twice. In
turn: the request still waits in the queue, but the reply sets the clock. Immediate: the operator answers at once, out of
turn, and what still waits is estimated by the new costs."""
COSTLIEST_FADES = 0.9
"""What is left of the largest cost, the yardstick of the price, each time that new costs arrive."""


def compiled(function: Function) -> Function:
    """The function, compiled on first use if numba is installed."""
    if importlib.util.find_spec("numba") is None:
        return function
    import numba  # only here: it takes a second to import

    return cast(Function, numba.njit(cache=True, nogil=True)(function))


@compiled
def _learn(sketch: FloatArray, cells: IntArray, key: int, cost: float) -> None:
    for row in range(cells.shape[0]):
        sketch[0, row, cells[row, key]] += 1.0
        sketch[1, row, cells[row, key]] += cost


@compiled
def _estimate(sketch: FloatArray, cells: IntArray, key: int, mean: float) -> tuple[float, bool]:
    best, rarest = 0, sketch[0, 0, cells[0, key]]
    for row in range(1, cells.shape[0]):
        count = sketch[0, row, cells[row, key]]
        if count < rarest:
            best, rarest = row, count
    if rarest < FORGOTTEN_BELOW:
        return mean, False
    return sketch[1, best, cells[best, key]] / rarest, True


@compiled
def _mean(sketch: FloatArray) -> float:
    rows = sketch[0, 0].sum()
    if rows > 0.0:
        return float(sketch[1, 0].sum() / rows)
    return 0.0


@compiled
def _settles(sketch: FloatArray, snapshot: FloatArray, tolerance: float) -> bool:
    """Compare with the last snapshot (equation 1; an empty cell counts as cost 0) and take a new one."""
    difference, total = 0.0, 0.0
    for row in range(snapshot.shape[0]):
        for column in range(snapshot.shape[1]):
            ratio = 0.0
            if sketch[0, row, column] > 0.0:
                ratio = sketch[1, row, column] / sketch[0, row, column]
            difference += abs(snapshot[row, column] - ratio)
            total += snapshot[row, column]
            snapshot[row, column] = ratio
    return total > 0.0 and difference <= tolerance * total


@compiled
def _execute(
    learning: FloatArray,
    known: FloatArray,
    snapshot: FloatArray,
    cells: IntArray,
    key: int,
    cost: float,
    look: bool,
    tolerance: float,
    stabilizing: bool,
) -> tuple[bool, bool]:
    """The operator's side of a row, as in Listing III.1: look first, then learn. Whether costs went out, and its state."""
    settled = False
    if look:
        settled = _settles(learning, snapshot, tolerance) and stabilizing
        stabilizing = not settled
        if settled:
            known[:] = learning
            learning[:] = 0.0
    _learn(learning, cells, key, cost)
    return settled, stabilizing


@compiled
def paper_kernel(
    settings: Any,
    keys: IntArray,
    costs: FloatArray,
    arrivals: FloatArray,
    cells: IntArray,
    past_keys: IntArray,
    past_costs: FloatArray,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """LAS, and with other sources of costs Straw-Man and Full Knowledge; empty `past_keys` is the literal start.

    CHECK holds the mean wait of the rows kept, the new one included, at the bound, by the estimates. Listing III.2 tests
    the mean without the new row (`settings.as_listed`): once it is above the bound nothing ever changes, and all is dropped.
    """
    shape = (2, cells.shape[0], cells.max() + 1)
    learning, known, snapshot, mean = np.zeros(shape), np.zeros(shape), np.zeros(shape[1:]), 0.0
    source, sync, margin, bound = settings.costs, settings.sync, settings.margin, settings.bound_ms
    look_every, tolerance = settings.look_every, settings.tolerance
    executed, stabilizing, running, due = 0, False, source != SKETCH, False

    for past in range(len(past_keys)):
        executed += 1
        look, key, cost = executed % look_every == 0, past_keys[past], past_costs[past]
        running, stabilizing = _execute(learning, known, snapshot, cells, key, cost, look, tolerance, stabilizing)
        if running:
            mean, due = _mean(known), True
            break

    total = len(keys)
    kept, waits = np.zeros(total, dtype=np.bool_), np.zeros(total)
    number, ends, estimates = np.zeros(total, dtype=np.int64), np.zeros(total), np.zeros(total)
    asked, asked_clock, busy = np.zeros(total, dtype=np.bool_), np.zeros(total), np.zeros(total)
    accepted, finished, wait_sum = 0, 0, 0.0
    op_clock, op_busy, clock = 0.0, 0.0, 0.0
    checked = 0  # rows that the check has counted in; rows kept before costs are known are not among them

    for row in range(total):
        now = arrivals[row]
        while finished < accepted and ends[finished] <= now:
            executed += 1
            settled = False
            if source == SKETCH:
                done, look = number[finished], executed % look_every == 0
                settled, stabilizing = _execute(
                    learning, known, snapshot, cells, keys[done], costs[done], look, tolerance, stabilizing
                )
                if settled:
                    mean, running, due = _mean(known), True, True
            if sync == IMMEDIATE and settled:
                clock = ends[finished]
                for waiting in range(finished + 1, accepted):
                    cost, _ = _estimate(known, cells, keys[number[waiting]], mean)
                    estimates[waiting] = cost * (1.0 + margin)
                    clock += estimates[waiting]
            if asked[finished]:
                if sync == LITERAL:
                    clock += busy[finished] - asked_clock[finished]
                elif sync == IN_TURN:
                    clock = ends[finished]
                    for waiting in range(finished + 1, accepted):
                        clock += estimates[waiting]
            finished += 1

        estimate = 0.0
        if running:
            if settings.clamp_to_now and clock < now:
                clock = now
            wait = clock - now
            exceeds = (wait_sum + wait) / (checked + 1) > bound
            if settings.as_listed:
                exceeds = checked > 0 and wait_sum / checked > bound
            if exceeds:
                continue
            wait_sum += wait
            checked += 1
            if source == EXACT:
                estimate = costs[row]
            elif source == CONSTANT:
                estimate = settings.mean_cost_ms
            else:
                estimate, _ = _estimate(known, cells, keys[row], mean)
                estimate *= 1.0 + margin
        clock += estimate
        if due and running:
            asked[accepted], asked_clock[accepted], due = True, clock, False

        kept[row] = True
        waits[row] = max(0.0, op_clock - now)
        op_clock = max(op_clock, now) + costs[row]
        op_busy += costs[row]
        number[accepted], ends[accepted], estimates[accepted], busy[accepted] = row, op_clock, estimate, op_busy
        accepted += 1
    return kept, waits


@compiled
def imposed_kernel(
    settings: Any, keys: IntArray, costs: FloatArray, arrivals: FloatArray, cells: IntArray, values: FloatArray
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Shedding by imposed load: a row is kept when its cost is at most a price that falls as the queue grows.

    A row delays all rows behind it by its own cost, so rarest rows are dropped when the costliest go first. The price is
    steered so that the mean wait of the rows kept stays just under the bound. Beside it the bound itself is checked, on
    the real waits that the operator reports: an estimate that is wrong costs rows, not latency. With `exact` the costs are
    given, which shows what the sketch loses.
    """
    shape = (2, cells.shape[0], cells.max() + 1)
    learning, known, mean, informed = np.zeros(shape), np.zeros(shape), 0.0, settings.exact
    bound, aim, slope, patience = settings.bound_ms, settings.aim, settings.slope, settings.patience
    weight, estimated, real, factors = np.zeros(2), np.zeros(2), np.zeros(2), np.ones(2)
    total = len(keys)
    kept, waits = np.zeros(total, dtype=np.bool_), np.zeros(total)
    number, ends, estimates = np.zeros(total, dtype=np.int64), np.zeros(total), np.zeros(total)
    of_known, believed = np.zeros(total, dtype=np.int64), np.zeros(total)
    accepted, finished, synced, wait_sum = 0, 0, 0, 0.0
    op_clock, clock, price, costliest = 0.0, 0.0, 0.0, 0.0
    remembered = 1.0 - 1.0 / settings.memory_rows

    for row in range(total):
        now = arrivals[row]
        while finished < accepted and ends[finished] <= now:
            done = number[finished]
            _learn(learning, cells, keys[done], costs[done])
            finished += 1
            full = finished % settings.costs_every == 0
            if full or (finished < settings.costs_every and finished & (finished - 1) == 0):
                known[:] = learning  # early on after 1, 2, 4, 8 ... rows: the first rows teach most
                mean, informed = _mean(known), True
                costliest *= COSTLIEST_FADES
            if full:
                learning *= 1.0 - settings.forget
            if finished - synced >= settings.sync_every or finished < settings.sync_every:
                for told in range(synced, finished):
                    kind = of_known[told]
                    if estimates[told] > 0.0:
                        weight[kind] = weight[kind] * remembered + 1.0
                        estimated[kind] = estimated[kind] * remembered + estimates[told]
                        real[kind] = real[kind] * remembered + costs[number[told]]
                        doubt = DOUBT_ROWS * real[kind] / weight[kind]
                        factors[kind] = (real[kind] + doubt) / (estimated[kind] + doubt)
                    surprise = waits[number[told]] - believed[told]
                    wait_sum += surprise
                    price -= patience * costliest * surprise / bound  # it was moved by the estimated wait
                synced = finished
                clock = ends[finished - 1]
                for waiting in range(finished, accepted):
                    clock += estimates[waiting] * factors[of_known[waiting]]

        if clock < now:
            clock = now
        wait = clock - now
        estimate, is_known = 0.0, False
        if settings.exact:
            estimate, is_known = costs[row], True
        elif informed:
            estimate, is_known = _estimate(known, cells, keys[row], mean)
        kind = 1 if is_known else 0
        cost = estimate * factors[kind]
        per_value = cost / values[row] if values[row] > 0.0 else np.inf
        if per_value < np.inf:
            costliest = max(costliest, per_value)
        excess, ceiling = wait / bound - aim, costliest * (1.0 + slope)
        if finished < settings.opening_rows:
            price = ceiling
        refused = per_value > price - slope * costliest * excess
        if per_value == np.inf:
            refused = price < costliest  # a row worth nothing goes as soon as anything must
        by_bound = (wait_sum + wait) / (accepted + 1) > bound and wait > settings.short_wait * bound
        if by_bound or (accepted > 0 and finished == 0):  # before the first row has finished nothing is known
            refused = True
        if by_bound:
            excess = max(excess, 1.0 - aim)  # the price must fall until it, and not the bound, refuses rows
        if not refused or by_bound or wait == 0.0:  # waits of rows that the price refuses do not count
            price = min(max(price - patience * costliest * excess, 0.0), ceiling)
        if refused:
            continue
        kept[row] = True
        wait_sum += wait
        waits[row] = max(0.0, op_clock - now)
        op_clock = max(op_clock, now) + costs[row]
        number[accepted], ends[accepted], estimates[accepted] = row, op_clock, estimate
        of_known[accepted], believed[accepted] = kind, wait
        clock += cost
        accepted += 1
    return kept, waits
