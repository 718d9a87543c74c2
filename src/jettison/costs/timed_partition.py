"""Shed and time the rows of one partition around a user's function: what an executor runs.

The wait of a row is the time from its arrival at the source until the user's function gets it: the wait for
its micro-batch, and then for its neighbours in the partition. Deciding happens on the first part; the second is the
sum of the costs of the rows kept before it, which is what the sketch estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.costs.batches import Batches, Joiner, gathered, results_of
from jettison.costs.cost_hashing import Cells, fingerprints
from jettison.costs.drop_choice import drop_costliest_first, tail_drop
from jettison.costs.granularity import Granularity
from jettison.costs.pace import STARVATION, Pace
from jettison.costs.partition_settings import PartitionSettings, utilities
from jettison.costs.residuals import Residuals
from jettison.costs.sketch import CostEstimates, CostSketch, FloatArray
from jettison.costs.task_report import TOP_KEYS, TaskReport, Totals, largest

ArrowFunction = Callable[[Batches], Batches]

LOOKAHEAD_ROWS = 50_000
"""Rows of a partition that are read before deciding on them, so that a costly row goes before cheap ones behind it."""
RESERVE = 0.05
"""Share of the bound that is left for what no estimate foresees."""
BEHIND = 0.1
"""Share of the bound by which rows may start later than expected before what is left is decided again."""
HEAD_START = 0.1
"""Share of the bound that a task may work before it has read on: the function starts while the other rows still come."""
LEARNED_ROWS = 1024
"""Rows of a chunk that are learned from at most, evenly spread."""
FIRST_ROWS = 32
"""Rows to run before the first decision, when nothing at all is known of costs."""


@dataclass(slots=True)
class WorkerMemory:
    """What a worker process keeps from task to task; losing it costs accuracy for a few rows and nothing else."""

    residuals: Residuals = field(default_factory=lambda: Residuals(memory_rows=1000.0))
    granularity: Granularity = field(default_factory=Granularity)
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows and when each arrived, worked out once."""

    table: pa.Table
    arrivals_s: FloatArray

    def first(self, rows: int) -> _Rows:
        return _Rows(self.table.slice(0, rows), self.arrivals_s[:rows])

    def after(self, rows: int) -> _Rows:
        return _Rows(self.table.slice(rows), self.arrivals_s[rows:])

    def where(self, wanted: NDArray[np.bool_]) -> _Rows:
        return _Rows(self.table.filter(pa.array(wanted)), self.arrivals_s[wanted])


@dataclass(slots=True)
class _Chunk:
    """Rows that were kept together, what was expected of them, and how it went, slice by slice."""

    keys: pa.Array
    cells: Cells
    estimates: FloatArray
    known: NDArray[np.bool_]
    arrivals_s: FloatArray
    before_s: FloatArray
    decided_s: float
    handed: int = 0
    sizes: list[int] = field(default_factory=list)
    starts_s: list[float] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)

    def add(self, rows: int, started_s: float, took_s: float) -> float:
        """A slice has gone through the user's function; returns what it had been expected to take."""
        first, self.handed = self.handed, self.handed + rows
        self.sizes.append(rows)
        self.starts_s.append(started_s)
        self.times_s.append(took_s)
        return float(self.before_s[self.handed] - self.before_s[first])


class PartitionShedder:
    """Runs a user's function over a partition with the rows that can start in time, and learns what they cost.

    Rows are dropped before the function sees them: as few as possible, the costliest first. Kept rows come in order of
    arrival, or in their own where it is not known. The function gets slices of Arrow batches instead of whole ones,
    as small as timing them allows (`Granularity`).

    Parameters
    ----------
    settings
        What to hold.
    costs
        Learned so far; learns on.
    memory
        Of this worker process.
    report
        Filled while the partition runs.
    clock
        Seconds since the epoch, never going back within a task.
    batch_id
        Of the micro-batch, where it is known: tasks of one batch share its work. `None` takes each task for a batch.
    """

    def __init__(
        self,
        settings: PartitionSettings,
        costs: CostSketch,
        memory: WorkerMemory,
        report: TaskReport,
        clock: Callable[[], float],
        batch_id: int | None = None,
    ) -> None:
        self._settings, self._costs, self._memory, self._report, self._clock = settings, costs, memory, report, clock
        self._batch_id = batch_id
        self._head_start_s = HEAD_START * settings.bound_s
        self._started_s: float | None = None
        self._suspended_s = 0.0
        self._own_s = 0.0  # on slices and results; `_own_time` is for what comes once in many rows
        self._work_ends_s: float | None = None
        self._fed_s: float | None = None  # when the function had asked for the last rows

    def run(self, function: ArrowFunction, batches: Batches) -> Batches:
        """The function's results for the rows kept."""
        self._report.tasks += 1
        joiner = Joiner()
        for result in results_of(function(self._feed(self._settings.checked(batches)))):
            # Neither joining results nor what happens to them downstream is work of the function.
            paused = self._clock()
            ready = joiner.add(result)
            joined = self._clock()
            self._own_s += joined - paused
            yield from ready
            self._suspended_s += (self._clock() if ready else joined) - paused
        if self._fed_s is not None:
            self._report.unlearned_s += max(0.0, self._clock() - self._suspended_s - self._fed_s)
        yield from joiner.rest()
        self._report.own_s += self._own_s
        self._memory.pace.end(self._report.busy_s)

    def _feed(self, batches: Batches) -> Batches:
        """Hand out rows in slices. When the clock runs away from the estimates, what is left is decided again."""
        granularity, longest_s = self._memory.granularity, BEHIND * self._settings.bound_s
        for rows in self._tables(batches):
            left: _Rows | None = rows
            while left is not None:
                with self._own_time():
                    chunk, kept = self._decide(left)
                    granularity.begin(longest_s)
                left, turned = None, self._clock()
                for piece in self._slices(kept.table):
                    # Each decision hands out one slice at least: deciding alone may take longer than the bound allows.
                    if self._settings.learn and chunk.handed and self._behind(chunk) > longest_s:
                        left = kept.after(chunk.handed)
                        break
                    started, suspended, own = self._clock(), self._suspended_s, self._own_s
                    yield piece
                    ended = self._clock()
                    took = ended - started - (self._suspended_s - suspended)
                    expected = chunk.add(piece.num_rows, started, max(took, 0.0))
                    # Ours for this slice: to cut it and look at the clock before it, and to join its results.
                    granularity.learn(piece.num_rows, took, expected, started - turned + self._own_s - own)
                    self._own_s += started - turned
                    turned = ended
                with self._own_time():
                    self._learn(chunk)
        self._fed_s = self._clock() - self._suspended_s

    def _tables(self, batches: Batches) -> Iterator[_Rows]:
        """Rows to be decided on together. Before anything is known of costs, only a few."""
        for parts in gathered(batches, self._enough):
            with self._own_time():
                rows = self._oldest_first(pa.Table.from_batches(parts))
                self._count(rows)
            if self._costs.rows_learned == 0.0:
                yield rows.first(FIRST_ROWS)
                rows = rows.after(FIRST_ROWS)
            if rows.table.num_rows:
                yield rows

    def _enough(self, rows: int) -> bool:
        """Whether to decide on so many rows now. The first ones, if they are little work, need not wait for the others."""
        work_s = 2.0 * rows * self._costs.mean_cost  # twice: these may cost more than most
        if rows < LOOKAHEAD_ROWS and not 0.0 < work_s <= self._head_start_s:
            return False
        self._head_start_s -= work_s
        return True

    def _oldest_first(self, table: pa.Table) -> _Rows:
        """Rows in order of arrival: a partition put together from several files has none of its own."""
        arrivals_s = self._arrivals(table, self._clock())
        if self._settings.arrival is None or (np.diff(arrivals_s) >= 0.0).all():
            return _Rows(table, arrivals_s)
        order = np.argsort(arrivals_s, kind="stable")
        return _Rows(table.take(pa.array(order)), arrivals_s[order])

    def _slices(self, kept: pa.Table) -> Batches:
        for batch in kept.drop_columns(list(self._settings.hidden)).to_batches():
            offset = 0
            while left := batch.num_rows - offset:
                rows = self._memory.granularity.next_rows(left)
                # No remainder of its own: a call for a few rows costs as much as one for many.
                piece = batch.slice(offset, rows if left >= 2 * rows else left)
                offset += piece.num_rows
                yield piece

    @contextmanager
    def _own_time(self) -> Iterator[None]:
        begun = self._clock()
        yield
        self._report.own_s += self._clock() - begun

    def _behind(self, chunk: _Chunk) -> float:
        """By how much the next row starts later than was expected when it was kept."""
        return self._clock() - self._suspended_s - chunk.decided_s - float(chunk.before_s[chunk.handed])

    def _count(self, rows: _Rows) -> None:
        late = self._clock() - rows.arrivals_s > self._settings.bound_s
        self._report.seen += rows.table.num_rows
        self._report.late += int(late.sum())

    def _decide(self, rows: _Rows) -> tuple[_Chunk, _Rows]:
        now_s, bound_s, residuals = self._clock(), self._settings.bound_s, self._memory.residuals
        keys = rows.table[self._settings.key].combine_chunks()
        cells = self._costs.hashes.cells(fingerprints(keys))
        estimates = self._costs.estimate_cells(cells)
        costs = estimates.cost * np.where(estimates.known, residuals.factor(known=True), residuals.factor(known=False))
        arrivals_s = rows.arrivals_s
        slack_s = (1.0 - RESERVE) * bound_s - (now_s - arrivals_s)
        if slack_s.max() <= 0.0:  # all come too late: still some work is done, on the cheapest
            slack_s = np.full(len(slack_s), STARVATION * bound_s)
        work_s = self._work(now_s - arrivals_s)
        if self._settings.rule == "tail_drop":
            kept = tail_drop(costs, slack_s)
        else:
            values = None if self._settings.value is None else utilities(rows.table, self._settings.value)
            kept = drop_costliest_first(costs, np.minimum(slack_s, work_s), values)
        self._work_ends_s = now_s + work_s
        if not kept.all():
            self._account_for(keys, costs, ~kept)
            keys, rows = keys.filter(pa.array(kept)), rows.where(kept)
            cells, costs = cells[:, kept], costs[kept]
            estimates = CostEstimates(estimates.cost[kept], estimates.known[kept])
        before_s = np.concatenate([[0.0], np.cumsum(costs)])
        since_s = now_s - self._suspended_s
        return _Chunk(keys, cells, estimates.cost, estimates.known, rows.arrivals_s, before_s, since_s), rows

    def _account_for(self, keys: pa.Array, costs: FloatArray, dropped: NDArray[np.bool_]) -> None:
        """Put rows that go on record, with what they were estimated at."""
        report, spared = self._report, costs[dropped]
        report.spared_s += float(spared.sum())
        named = _costliest_keys(keys.filter(pa.array(dropped)), spared)
        report.dropped_keys = largest(report.dropped_keys, named, TOP_KEYS)

    def _work(self, ages_s: FloatArray) -> float:
        """Work that this task may still take on."""
        bound_s = self._settings.bound_s
        if self._work_ends_s is not None:  # the same task, some rows later
            return max(self._work_ends_s - self._clock(), STARVATION * bound_s)
        if self._settings.arrival is None:
            return bound_s
        return self._memory.pace.begin(self._batch_id, float(np.quantile(ages_s, 0.95)), bound_s)

    def _arrivals(self, rows: pa.Table, now_s: float) -> FloatArray:
        if self._settings.arrival is not None:
            return self._settings.arrivals_s(rows, now_s)
        # The wait starts with the first rows that came from upstream, not with the task that waited for them.
        self._started_s = now_s if self._started_s is None else self._started_s
        return np.full(rows.num_rows, self._started_s)

    def _learn(self, chunk: _Chunk) -> None:
        """Share each slice's time among its rows in proportion to what they were estimated to cost."""
        if not chunk.handed:
            return
        done, sizes, times_s = slice(0, chunk.handed), np.array(chunk.sizes), np.array(chunk.times_s)
        weights = np.maximum(chunk.estimates[done], 1e-12)
        firsts = np.cumsum(sizes) - sizes
        costs = weights * np.repeat(times_s / np.add.reduceat(weights, firsts), sizes)
        waits_s = np.repeat(chunk.starts_s, sizes) - chunk.arrivals_s[done]
        report = self._report
        report.kept += chunk.handed
        report.busy_s += float(times_s.sum())
        report.wait_s += float(waits_s.sum())
        report.longest_wait_s = max(report.longest_wait_s, float(waits_s.max()))
        report.over += int((waits_s > self._settings.bound_s).sum())
        # Of many rows at once a sample tells as much, and learning from all would cost more than it brings.
        every = -(-chunk.handed // LEARNED_ROWS)
        sample = slice(0, chunk.handed, every)
        report.costs.learn_cells(chunk.cells[:, sample], costs[::every])
        names = chunk.keys if every == 1 else chunk.keys.take(pa.array(np.arange(0, chunk.handed, every)))
        named = _costliest_keys(names.slice(0, len(costs[::every])), every * costs[::every], every)
        report.top = largest(report.top, named, TOP_KEYS)
        if self._settings.learn:
            self._correct(chunk, sample, costs[::every])

    def _correct(self, chunk: _Chunk, sample: slice, costs: FloatArray) -> None:
        """Move estimates and margin towards what the rows cost."""
        self._costs.learn_cells(chunk.cells[:, sample], costs)
        # Known keys are judged by the estimate that the next rows will get: it has just moved towards their costs, and
        # a factor against the old one would correct the same error twice.
        after = self._costs.estimate_cells(chunk.cells[:, sample]).cost
        known = chunk.known[sample]
        residuals = self._memory.residuals
        residuals.learn(float(after[known].sum()), float(costs[known].sum()), known=True, rows=int(known.sum()))
        residuals.learn(
            float(chunk.estimates[sample][~known].sum()),
            float(costs[~known].sum()),
            known=False,
            rows=int((~known).sum()),
        )


def _costliest_keys(keys: pa.Array, costs: FloatArray, rows_each: int = 1) -> Totals:
    encoded = keys.dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    totals, rows = np.bincount(codes, weights=costs), np.bincount(codes)
    names = encoded.dictionary
    costliest = np.argsort(totals)[::-1][:TOP_KEYS]
    return {
        str(names[int(code)].as_py()) if code < len(names) else "null": (
            float(rows_each * rows[code]),
            float(totals[code]),
        )
        for code in costliest
        if rows[code]
    }
