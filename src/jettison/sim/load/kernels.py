"""The same parties as in `replay`, fused into loops that a compiler turns into machine code.

Five thousand runs of an experiment are 160 million rows for each algorithm. Tests hold these loops to the readable
classes of `jettison.costs`, row by row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jettison.costs.imposed import DEAREST_FADES
from jettison.costs.residuals import DOUBT_ROWS
from jettison.costs.sketch import FORGOTTEN_BELOW, FloatArray
from jettison.sim.load.compiled import compiled
from jettison.sim.load.workload import IntArray

SKETCH, CONSTANT, EXACT = 0, 1, 2
"""Where the shedder has its costs from."""
AVERAGE, PER_ROW, SLIDING, LISTING = 0, 1, 2, 3
"""The check on waiting times."""
LITERAL, IN_TURN, IMMEDIATE = 0, 1, 2
"""The synchronisation."""


@compiled
def _learn(counts: FloatArray, costs: FloatArray, cells: IntArray, key: int, cost: float) -> None:
    for row in range(cells.shape[0]):
        counts[row, cells[row, key]] += 1.0
        costs[row, cells[row, key]] += cost


@compiled
def _estimate(counts: FloatArray, costs: FloatArray, cells: IntArray, key: int, mean: float) -> tuple[float, bool]:
    best, fewest = 0, counts[0, cells[0, key]]
    for row in range(1, cells.shape[0]):
        count = counts[row, cells[row, key]]
        if count < fewest:
            best, fewest = row, count
    if fewest < FORGOTTEN_BELOW:
        return mean, False
    return costs[best, cells[best, key]] / fewest, True


@compiled
def _mean(counts: FloatArray, costs: FloatArray) -> float:
    rows = counts[0].sum()
    if rows > 0.0:
        return float(costs[0].sum() / rows)
    return 0.0


@compiled
def _settles(counts: FloatArray, costs: FloatArray, snapshot: FloatArray, tolerance: float) -> bool:
    """Compare with the last snapshot and take a new one; a tolerance below zero never settles."""
    difference, total = 0.0, 0.0
    for row in range(counts.shape[0]):
        for column in range(counts.shape[1]):
            ratio = 0.0
            if counts[row, column] > 0.0:
                ratio = costs[row, column] / counts[row, column]
            difference += abs(snapshot[row, column] - ratio)
            total += snapshot[row, column]
            snapshot[row, column] = ratio
    return total > 0.0 and difference <= tolerance * total


@compiled
def paper_kernel(
    keys: IntArray,
    costs: FloatArray,
    arrivals: FloatArray,
    cells: IntArray,
    columns: int,
    look_every: int,
    tolerance: float,
    source: int,
    constant: float,
    margin: float,
    check: int,
    bound: float,
    window: int,
    sync: int,
    clamp: bool,
    rest_keys: IntArray,
    rest_costs: FloatArray,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """LAS, and with other sources of costs Straw-Man and Full Knowledge; empty `rest_keys` is the literal start."""
    shape = (cells.shape[0], columns)
    op_counts, op_costs, snapshot = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    known_counts, known_costs, mean = np.zeros(shape), np.zeros(shape), 0.0
    executed, stabilizing, running, due = 0, False, source != SKETCH, False

    for past in range(len(rest_keys)):
        executed += 1
        if executed % look_every == 0:
            if _settles(op_counts, op_costs, snapshot, tolerance) and stabilizing:
                known_counts[:], known_costs[:] = op_counts, op_costs
                op_counts[:], op_costs[:] = 0.0, 0.0
                mean, stabilizing, running, due = _mean(known_counts, known_costs), False, True, True
            else:
                stabilizing = True
        _learn(op_counts, op_costs, cells, rest_keys[past], rest_costs[past])
        if running:
            break

    total = len(keys)
    kept, waits = np.zeros(total, dtype=np.bool_), np.zeros(total)
    number, ends, estimates = np.zeros(total, dtype=np.int64), np.zeros(total), np.zeros(total)
    asked, asked_clock, busy = np.zeros(total, dtype=np.bool_), np.zeros(total), np.zeros(total)
    seen_waits = np.zeros(total)
    accepted, finished, wait_sum, _in_window = 0, 0, 0.0, 0
    op_clock, op_busy, clock = 0.0, 0.0, 0.0
    checked = 0  # rows that the check has counted in; rows kept in NOP are not among them

    for row in range(total):
        now = arrivals[row]
        while finished < accepted and ends[finished] <= now:
            done = number[finished]
            executed += 1
            settled = False
            if executed % look_every == 0 and source == SKETCH:
                if _settles(op_counts, op_costs, snapshot, tolerance) and stabilizing:
                    known_counts[:], known_costs[:] = op_counts, op_costs
                    op_counts[:], op_costs[:] = 0.0, 0.0
                    mean, stabilizing, running, due = _mean(known_counts, known_costs), False, True, True
                    settled = True
                else:
                    stabilizing = True
            if source == SKETCH:
                _learn(op_counts, op_costs, cells, keys[done], costs[done])
            if sync == IMMEDIATE and settled:
                clock = ends[finished]
                for waiting in range(finished + 1, accepted):
                    cost, _ = _estimate(known_counts, known_costs, cells, keys[number[waiting]], mean)
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
            if clamp and clock < now:
                clock = now
            wait = clock - now
            if check == PER_ROW:
                exceeds = wait > bound
            elif check == LISTING:
                exceeds = checked > 0 and wait_sum / checked > bound
            elif check == SLIDING:
                leaving = seen_waits[checked - window] if checked >= window else 0.0
                exceeds = (wait_sum - leaving + wait) / min(checked + 1, window) > bound
            else:
                exceeds = (wait_sum + wait) / (checked + 1) > bound
            if exceeds:
                continue
            if check == SLIDING and checked >= window:
                wait_sum -= seen_waits[checked - window]
            seen_waits[checked] = wait
            wait_sum += wait
            checked += 1
            if source == EXACT:
                estimate = costs[row]
            elif source == CONSTANT:
                estimate = constant
            else:
                estimate, _ = _estimate(known_counts, known_costs, cells, keys[row], mean)
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
    keys: IntArray,
    costs: FloatArray,
    arrivals: FloatArray,
    values: FloatArray,
    cells: IntArray,
    columns: int,
    costs_every: int,
    sync_every: int,
    forget: float,
    memory_rows: float,
    bound: float,
    aim: float,
    slope: float,
    patience: float,
    opening_rows: int,
    mercy: float,
    exact: bool,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Ours; with `exact` the costs are given, which shows what the sketch loses."""
    shape = (cells.shape[0], columns)
    op_counts, op_costs = np.zeros(shape), np.zeros(shape)
    known_counts, known_costs, mean, informed = np.zeros(shape), np.zeros(shape), 0.0, exact
    weight, estimated, real, factors = np.zeros(2), np.zeros(2), np.zeros(2), np.ones(2)
    total = len(keys)
    kept, waits = np.zeros(total, dtype=np.bool_), np.zeros(total)
    number, ends, estimates = np.zeros(total, dtype=np.int64), np.zeros(total), np.zeros(total)
    of_known, believed = np.zeros(total, dtype=np.int64), np.zeros(total)
    accepted, finished, synced, wait_sum = 0, 0, 0, 0.0
    op_clock, clock, price, dearest = 0.0, 0.0, 0.0, 0.0
    remembered = 1.0 - 1.0 / memory_rows

    for row in range(total):
        now = arrivals[row]
        while finished < accepted and ends[finished] <= now:
            done = number[finished]
            _learn(op_counts, op_costs, cells, keys[done], costs[done])
            finished += 1
            full = finished % costs_every == 0
            if full or (finished < costs_every and finished & (finished - 1) == 0):
                known_counts[:], known_costs[:] = op_counts, op_costs
                mean, informed = _mean(known_counts, known_costs), True
                dearest *= DEAREST_FADES
            if full:
                op_counts *= 1.0 - forget
                op_costs *= 1.0 - forget
            if finished - synced >= sync_every or finished < sync_every:
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
                    price -= patience * dearest * surprise / bound
                synced = finished
                clock = ends[finished - 1]
                for waiting in range(finished, accepted):
                    clock += estimates[waiting] * factors[of_known[waiting]]

        if clock < now:
            clock = now
        wait = clock - now
        estimate, known = 0.0, False
        if exact:
            estimate, known = costs[row], True
        elif informed:
            estimate, known = _estimate(known_counts, known_costs, cells, keys[row], mean)
        kind = 1 if known else 0
        cost = estimate * factors[kind]
        per_value = cost / values[row] if values[row] > 0.0 else np.inf
        if per_value < np.inf:
            dearest = max(dearest, per_value)
        excess, ceiling = wait / bound - aim, dearest * (1.0 + slope)
        if finished < opening_rows:
            price = ceiling
        refused = per_value > price - slope * dearest * excess
        if per_value == np.inf:
            refused = price < dearest
        by_bound = (wait_sum + wait) / (accepted + 1) > bound and wait > mercy * bound
        if by_bound or (accepted > 0 and finished == 0):
            refused = True
        if by_bound:
            excess = max(excess, 1.0 - aim)
        if not refused or by_bound or wait == 0.0:
            price = min(max(price - patience * dearest * excess, 0.0), ceiling)
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


@compiled
def random_kernel(
    costs: FloatArray, arrivals: FloatArray, keep: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Base Line: which rows are kept was drawn beforehand."""
    waits, op_clock = np.zeros(len(costs)), 0.0
    for row in range(len(costs)):
        if keep[row]:
            waits[row] = max(0.0, op_clock - arrivals[row])
            op_clock = max(op_clock, arrivals[row]) + costs[row]
    return keep, waits
