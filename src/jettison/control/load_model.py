"""What a micro-batch costs, learned while the query runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from jettison.core.documents import Amount, Natural

Vector = NDArray[np.float64]

# The shapes: rows whose work equals the fixed part of a batch's work, and what part of a kept row's work seeing it is.
_ROWS, _SEEN = (
    grid.ravel() for grid in np.meshgrid(10 ** np.arange(0.0, 8.1, 1 / 3), [0.02, 0.05, 0.1, 0.2, 0.4, 0.7])
)
_USUAL_SEEN, _SEEN_SPREAD = math.log(0.1), 0.7
_USUAL_FIXED_S, _FIXED_SPREAD, _DOUBTFUL_SPREAD = math.log(0.25), 0.8, 1.6
_EVEN = 0.5  # Jeffreys' prior of the fixed share of the work: no belief wins because many shapes amount to it
_MEMORY, _LEAST_EVIDENCE = 0.97, -20.0  # what is left of old evidence after a batch that tells something new; its limit
_TAIL = 4.0  # degrees of freedom of Student's t: one odd batch does not decide between shapes
_NOISE, _LEAST_NOISE, _NOISE_GAIN = 0.15, 0.1, 0.1  # relative scatter of a batch's work: at first, at least, learning
_DRIFT = 0.02  # of the level, per batch
_YOUNG_DRIFT = 0.25  # the same while the costs of a young process fall
_FIRST_NOISE = 1.5  # of the first batch of a process: compiling takes most of it
_SURPRISE = 2.3  # standard deviations from which a batch is believed in full only when the next one confirms it
_UNDO = 3  # batches after a rise of all costs, within which a single one may undo it
_OVERHEAD_GAIN = 0.3
# Surprises of one sign, one after the other: how fast their mean is learned, and from where it is no accident.
_LEAN_GAIN, _LEANS = 0.3, 0.5
_DOUBT = 0.2  # share of the weight of all shapes that are cheaper than the one that doubt picks


@dataclass(frozen=True, slots=True)
class Costs:
    """What a batch takes: `fixed_s + per_seen_row_s * seen + per_kept_row_s * kept`."""

    fixed_s: float
    per_seen_row_s: float
    per_kept_row_s: float

    def predict(self, seen: float, kept: float) -> float:
        """Seconds that a batch with these rows is expected to take."""
        return self.fixed_s + self.per_seen_row_s * seen + self.per_kept_row_s * kept

    def kept_within(self, duration_s: float, seen: float) -> float:
        """Rows to keep of `seen` for a batch of `duration_s`; negative if merely seeing them takes longer."""
        return (duration_s - self.fixed_s - self.per_seen_row_s * seen) / max(self.per_kept_row_s, 1e-12)

    def capacity_rows_per_s(self, duration_s: float) -> float:
        """Highest arrival rate at which batches of `duration_s`, run back to back, keep every row."""
        return max(duration_s - self.fixed_s, 0.0) / max(self.per_seen_row_s + self.per_kept_row_s, 1e-12) / duration_s

    def more_rows(self, expected_s: float, shown_s: float) -> float:
        """By what a batch's rows must be multiplied for it to take `shown_s` instead of `expected_s`.

        At least half of its length counts as work on rows: a belief in a large fixed cost, which alike batches can neither
        prove nor refute, must not turn one slow batch into a flood.
        """
        fixed_s = min(self.fixed_s, expected_s / 2)
        return max(shown_s - fixed_s, 0.0) / (expected_s - fixed_s)


class Running(NamedTuple):
    """A batch that has not ended: its rows as far as they are known, and how long it has run."""

    seen: float
    kept: float
    elapsed_s: float


@dataclass
class LoadModel:
    """Duration of a micro-batch as `fixed + per_seen * seen + per_kept * kept`, learned online; all costs are positive.

    A lasting change of all costs by a factor of two is followed within two batches; a single slow batch (a garbage
    collection) moves predictions by less than a quarter. Batches without rows are ignored, and so is the first batch of a
    process, as far as anything else is known.

    Notes
    -----
    Where the engine tells which part of a batch was work on rows, the rest is fixed by its nature and is averaged apart.
    The work itself has a fixed part too. A bank of shapes says in which ratio it stands to the cost of seeing and of
    keeping a row; each shape follows its own level, the one factor by which its prediction is to be multiplied. Under the
    right shape the level is steady; under a wrong one it jumps whenever batches differ in size or in the share kept. So
    shapes are weighed by how well their level predicted each batch, with tails as heavy as those of Student's t, and costs
    are the mean over shapes. Every shape stays in the bank and old evidence fades: no wrong belief is final. What alike
    batches cannot tell apart, weak expectations decide: a quarter of a second of fixed work, and seeing as a tenth of the
    cost of a row. Where it is asked what is not unlikely (`..._in_doubt`), the first of them is weaker still.

    Examples
    --------
    >>> model = LoadModel()
    >>> for seen in (100_000, 200_000, 400_000, 300_000, 500_000, 150_000, 250_000, 450_000) * 4:
    ...     model.observe(seen, seen // 2, 0.3 + 1e-6 * seen + 4e-6 * (seen // 2))
    >>> round(model.predict(600_000, 300_000), 1)
    2.1
    """

    levels: Vector = field(default_factory=lambda: np.zeros(len(_ROWS)))
    evidence: Vector = field(default_factory=lambda: np.zeros(len(_ROWS)))
    last_surprise: Vector = field(default_factory=lambda: np.zeros(len(_ROWS)))
    variance: Annotated[float, Meta(ge=0.0, le=1e3)] = 0.0
    noise: Annotated[float, Meta(ge=_LEAST_NOISE, le=10.0)] = _NOISE
    """Relative scatter of the work of batches that differ in nothing."""
    lean: Annotated[float, Meta(ge=-10.0, le=10.0)] = 0.0
    """Mean of the last surprises in standard deviations: off zero while costs drift one way."""
    batches_raised: Natural = _UNDO + 1
    overhead_s: Amount = 0.0
    rows: Amount = 0.0
    first: bool = True
    batches: Natural = 0
    """Batches learned from."""

    def __post_init__(self) -> None:
        if any(len(each) != len(_ROWS) for each in (self.levels, self.evidence, self.last_surprise)):
            raise ValueError(f"expected {len(_ROWS)} shapes")
        self.costs = Costs(0.0, 0.0, 0.0)
        self._weigh()

    @property
    def ready(self) -> bool:
        """Whether anything but the first batch of a process has been learned from."""
        return self.batches > 0

    def expect_warm_up(self) -> None:
        """Count the next batch for little: the process has just started, and what compiling takes confirms nothing."""
        self.first = True
        self.last_surprise = np.zeros(len(_ROWS))

    def observe(
        self, seen: int, kept: int, duration_s: float, work_s: float | None = None, falling: float = 0.0
    ) -> None:
        """Learn from one finished batch; `falling`, from 0 to 1, says how far the costs of the process may be from final."""
        if seen <= 0 or not (math.isfinite(duration_s) and duration_s > 0):
            return
        work_s = duration_s if work_s is None else min(max(work_s, 0.01 * duration_s), duration_s)
        first, self.first = self.first, False
        if first and not self.ready:
            return
        drift = _DRIFT + _YOUNG_DRIFT * falling
        self._learn(seen, min(kept, seen), work_s, _FIRST_NOISE if first else self.noise, drift)
        overhead_s = duration_s - work_s
        if not first:
            gain = 1.0 if self.batches == 0 else _OVERHEAD_GAIN
            # Three times the usual at most: one slow commit is no habit.
            limit_s = math.inf if self.batches == 0 else 3 * self.overhead_s + 0.05
            self.overhead_s += gain * (min(overhead_s, limit_s) - self.overhead_s)
        self.rows += (1.0 if self.batches == 0 else _OVERHEAD_GAIN) * (kept - self.rows)
        self.batches += 1
        self._weigh()

    def predict(self, seen: float, kept: float) -> float:
        """Seconds that a batch with these rows is expected to take."""
        return self.costs.predict(seen, kept)

    def _learn(self, seen: int, kept: int, work_s: float, noise: float, drift: float) -> None:
        level = np.log(work_s / (_ROWS + _SEEN * seen + (1 - _SEEN) * kept))
        if not self.ready:
            self.levels, self.variance = level, noise**2
            return
        # A lasting lean says that costs drift: each further batch is then believed more.
        variance = self.variance + drift**2 + (noise * max(abs(self.lean) - _LEANS, 0.0)) ** 2
        surprise = level - self.levels
        # The costs of a young process fall; a rise is as surprising as it is later.
        steady = math.sqrt(self.variance + _DRIFT**2 + noise**2)
        spread = np.where(surprise < 0, math.sqrt(variance + noise**2), steady)
        support = -(_TAIL + 1) / 2 * np.log1p((surprise / spread) ** 2 / _TAIL)
        # Alike batches tell nothing of the shapes, and nothing that was told is forgotten for them.
        told = min(float(np.sqrt(self._weights @ (support - self._weights @ support) ** 2)), 1.0)
        evidence = self.evidence * (1 - told * (1 - _MEMORY)) + support
        self.evidence = np.maximum(evidence - evidence.max(), _LEAST_EVIDENCE)
        limit = _SURPRISE * spread
        if noise == self.noise and drift < 2 * _DRIFT:
            # 1.25 turns a mean deviation into a standard deviation.
            scatter = 1.25 * min(abs(float(self._weights @ surprise)), _SURPRISE * steady)
            self.noise = max(noise + _NOISE_GAIN * (scatter - noise), _LEAST_NOISE)
        leans = float(self._weights @ np.clip(surprise / spread, -_SURPRISE, _SURPRISE))
        self.lean += _LEAN_GAIN * (leans - self.lean)
        confirmed = (np.abs(surprise) > limit / 2) & (surprise * self.last_surprise > 0)
        if self.batches_raised <= _UNDO:
            confirmed |= surprise < -limit  # two slow batches were an accident after all
        raised = float(self._weights @ (confirmed & (surprise > 0))) > 0.5
        self.batches_raised = 0 if raised else self.batches_raised + 1
        gain = variance / (variance + noise**2)
        self.levels = self.levels + np.where(confirmed, surprise, gain * np.clip(surprise, -limit, limit))
        self.last_surprise = np.where(np.abs(surprise) > limit, surprise, 0.0)
        self.variance = variance * (1 - gain)

    def _weigh(self) -> None:
        """Costs as the mean over shapes."""
        fixed_s = np.exp(self.levels) * _ROWS
        odd = (np.log(fixed_s) - _USUAL_FIXED_S) ** 2
        fixed_share = _ROWS / (_ROWS + max(self.rows, 1.0))
        told = self.evidence + _EVEN * np.log(fixed_share * (1 - fixed_share))
        told -= ((np.log(_SEEN) - _USUAL_SEEN) / _SEEN_SPREAD) ** 2 / 2
        self._weights = weight = _normalized(told - odd / _FIXED_SPREAD**2 / 2)
        self._doubtful_weights = _normalized(told - odd / _DOUBTFUL_SPREAD**2 / 2)
        per_row_s = weight * np.exp(self.levels)
        self.costs = Costs(
            self.overhead_s + float(weight @ fixed_s),
            float(per_row_s @ _SEEN),
            float(per_row_s @ (1 - _SEEN)),
        )

    def costs_in_doubt(self, rows: float, running: Running | None = None) -> Costs:
        """The costs under which a batch that keeps all of `rows` takes as little time as is not unlikely.

        A batch that runs tells something before it ends: costs under which it should have ended are less likely.
        """
        weights = self._doubtful_weights
        if running is not None and running.elapsed_s > self.overhead_s:
            work = _ROWS + _SEEN * running.seen + (1 - _SEEN) * running.kept
            ahead = np.log((running.elapsed_s - self.overhead_s) / work) - self.levels
            weights = weights * _outlasts(ahead / math.sqrt(self.variance + self.noise**2))
            weights = weights / weights.sum()
        order = np.argsort(np.exp(self.levels) * (_ROWS + rows))
        one = order[int(np.searchsorted(np.cumsum(weights[order]), _DOUBT))]
        row_s = math.exp(self.levels[one])
        fixed_s = self.overhead_s + row_s * float(_ROWS[one])
        return Costs(fixed_s, row_s * float(_SEEN[one]), row_s * float(1 - _SEEN[one]))

    def saving_in_doubt(self, rows: float, least_share: float) -> float:
        """Share of the length of a batch of `rows` that dropping saves at least, unless that is unlikely."""
        row_s = np.exp(self.levels)
        saved_s = row_s * (1 - _SEEN) * (1 - least_share) * rows
        saved = saved_s / (self.overhead_s + row_s * (_ROWS + rows))
        order = np.argsort(saved)
        return float(saved[order[int(np.searchsorted(np.cumsum(self._doubtful_weights[order]), _DOUBT))]])


def _outlasts(deviations: Vector) -> Vector:
    """Chance that Student's t of four degrees of freedom, the tail of `_TAIL`, lies beyond each of these."""
    scaled = 1 + deviations**2 / 4
    chance: Vector = 0.5 - 0.375 * deviations / np.sqrt(scaled) * (1 - deviations**2 / (12 * scaled))
    return np.maximum(chance, 1e-12)


def _normalized(logarithms: Vector) -> Vector:
    weights: Vector = np.exp(logarithms - logarithms.max())
    weights /= weights.sum()
    return weights
