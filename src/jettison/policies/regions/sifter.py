"""Sifter: drop region by region, where the standing queries lose the least."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from jettison.core.documents import Natural, Share
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats, beside_protected
from jettison.errors import PlanTooLarge, refuse
from jettison.policies.base import Lesson, Policy
from jettison.policies.regions.build import Built, Sample
from jettison.policies.regions.choose import Candidate, best, candidates
from jettison.policies.regions.configure import check_fairness
from jettison.policies.regions.consolidate import frequencies
from jettison.policies.regions.following import NewestRows, PassRate, SavedRows, share_passing
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.region_setting import RegionDrop, RegionSpec, fingerprint, fits
from jettison.source import codec
from jettison.source.raster import Raster
from jettison.source.region_filter import Outside, RegionFilter
from jettison.source.space import Codes, Floats

# When the budget's share drifts, regions are rebuilt only if so much of the sample is new: old rows would give the old ones.
_NEW_ON_DRIFT = 0.1
_DRIFT = 0.05
_MOST_SAVED = 150_000  # values of sampled rows
_FILLED = 0.9  # part of a plan that regions may fill
# Thresholds are rounded, and corrections are by chance: less than this is no miss of a budget.
_MET_WITHIN = 1e-3


@dataclass(frozen=True, slots=True)
class SavedSifter:
    """What is known of a stream, for a restart.

    Parameters
    ----------
    newest, built_from
        Rows of the stream, and those that the regions are built from; `None` where they are the user's own sample, or many.
    built_for, drop_points, plan_room
        For which share regions are built, and for how many drop points in how many bytes.
    passed
        How many rows passed for each expected, by regions and drop point.
    """

    newest: SavedRows | None
    built_from: Floats | None
    built_for: Share | None
    drop_points: Natural
    plan_room: Natural
    passed: dict[str, dict[str, PassRate]]


class Sifter(Policy):
    """Spends the budget on the regions of the data space that many queries want and few rows fill.

    For a server of many standing range queries over one stream. The expected share of rows processed equals the
    budget, and the thresholds are the best that the regions allow: those that lose the least overall QoS while no two
    regions with queries differ by more than `fairness`.

    Parameters
    ----------
    queries
        The standing queries.
    sample
        Rows of the unfiltered stream: a mapping of columns, or an array of coordinates. Some thousands are enough.
    regions
        Granularity of a filter.
    fairness
        Largest difference between the shares dropped in two regions with queries, in [0, 1].
    partitioning
        `"auto"` compares all four by the QoS that the model expects; or one of `"grid"`, `"data"`, `"query"`,
        `"qdpart"`.
    outside
        What happens to rows outside the domain while shedding: all are kept, or all but the reserve dropped. Rows with a
        missing value have regions of their own.
    reserve
        Share of the rows kept that is taken from all rows alike, whatever the queries want: above 0, so that every row
        may be kept and weights add up to all rows; the larger, the surer are totals over rows that few queries want.
    sample_every
        One row in so many is kept in every region and marked, as a sample of the unfiltered stream; 0: none. On Spark
        the regions are then rebuilt from it when the budget's share drifts, or the stream does.
    sample_size
        How many of the newest sampled rows regions are built from; never fewer than `sample` has.
    drift
        Change of the budget's share that calls for new regions, 0.05 unless given; refused without `sample_every`.

    Examples
    --------
    >>> from jettison.source.space import Attribute
    >>> space = [Attribute.number("price", 0, 100)]
    >>> queries = RangeQueries(space, ["price > 75"])
    >>> sifter = Sifter(queries, {"price": np.linspace(0, 100, 1001)}, regions=4, partitioning="grid")
    >>> sifter.filter(share=0.5).drop.round(2)  # the last region is that of missing values
    array([0.67, 0.67, 0.67, 0.  , 0.5 ])

    Notes
    -----
    On Spark a row's decision is a hash against its region's threshold; at a source it is a pair of counters, see
    `jettison.source`. Where the raster of the regions is too large for a plan, as with many attributes, fewer regions
    are used there.

    A sample is only a sample, so what passes misses the budget by some percent at first. A running query tells how
    many rows did pass (`learn`), and later plans make up for the difference. Only at a drop point with
    protected rows that is left to the estimate of their share, which takes in the same difference.

    References
    ----------
    .. [1] Gedik, Wu, Yu: Efficient Construction of Compact Shedding Filters for Data Stream Processing. ICDE 2007.
    """

    state_type: ClassVar[Any] = SavedSifter

    def __init__(
        self,
        queries: RangeQueries,
        sample: ArrayLike | dict[str, ArrayLike],
        *,
        regions: int = 16,
        fairness: float = 0.5,
        partitioning: str = "auto",
        outside: Outside = "keep",
        reserve: float = 0.05,
        sample_every: int = 0,
        sample_size: int = 2000,
        drift: float | None = None,
    ) -> None:
        check_fairness(fairness)
        if sample_every < 0 or sample_every == 1:
            refuse(
                "`sample_every` must be 0, or 2 and more",
                repr(sample_every),
                hint="100 marks one row in a hundred, 0 none",
            )
        if not 0.0 < reserve <= 1.0:
            refuse(
                "`reserve` must lie in (0, 1]",
                repr(reserve),
                hint="0.01 leaves nearly all to the queries; without any, rows nobody asks for would have no weight",
            )
        if drift is not None and not sample_every:
            hint = "pass `sample_every`, as 100, or leave `drift` out"
            refuse("`drift` needs `sample_every`: regions are rebuilt from that sample alone", repr(drift), hint=hint)
        drift = _DRIFT if drift is None else drift
        if sample_size < 1 or drift <= 0.0:
            refuse(
                "`sample_size` and `drift` must be positive",
                f"{sample_size} and {drift}",
                hint=f"leave them out for 2000 rows and {_DRIFT:g}",
            )
        if outside not in get_args(Outside):
            hint = "'keep' lets rows outside the domain pass, 'drop' keeps few of them"
            refuse("`outside` must be 'keep' or 'drop'", repr(outside), hint=hint)
        self.queries = queries
        self.fairness = fairness
        self.reserve = reserve
        self.sample_every = sample_every
        self._regions, self._partitioning = regions, partitioning
        self._outside, self._sample_size, self._drift = outside, sample_size, drift
        self._candidates: tuple[Candidate, ...] = ()
        self._drop_points, self._plan_room = 1, self.plan_bytes
        self.rebuild(sample)

    @property
    def spec(self) -> RegionSpec:
        return RegionSpec(self.queries.space, self.sample_every)

    def outline(self) -> dict[str, Any]:
        """The data space that regions lie in."""
        return {
            "attributes": [
                {"name": one.name, "low": one.low, "end": one.end, "values": list(one.values)}
                for one in self.queries.space.attributes
            ]
        }

    @property
    def unavoidable_share(self) -> float:
        """The sample, which is kept everywhere; and where rows outside the domain are kept, these beside the reserve."""
        sampled = 1.0 / self.sample_every if self.sample_every else 0.0
        beyond = 1.0 - float(self._on_plan[0].frequency.sum()) if self._outside == "keep" else 0.0
        with_reserve = beyond / (1.0 - (1.0 - beyond) * self.reserve) if beyond > 0.0 else 0.0
        return max(sampled + (1.0 - sampled) * beyond, with_reserve)

    def rebuild(self, sample: ArrayLike | dict[str, ArrayLike]) -> None:
        """Rebuild all regions from a new sample of the unfiltered stream; the next plan uses them."""
        space = self.queries.space
        points = space.points(sample) if isinstance(sample, dict) else np.asarray(sample, dtype=np.float64)
        if not points.size:
            hint = "pass some rows of the stream, with a value for each attribute; a thousand are enough"
            refuse("`sample` must hold rows", "none", hint=hint)
        self._given = points.reshape(-1, space.dimensions)
        self._newest = NewestRows(self._given, self._sample_size)
        self._rebuild(throttler=None)

    def learn(self, lesson: Lesson) -> None:
        """Take in sampled rows, as coordinates by drop point, each batch once; and how many rows passed under its plan."""
        for point, rows in lesson.observed.items():
            self._newest.add(lesson.batch_id, point, rows)
        if lesson.counted is not None and lesson.plan is not None:
            self._learn_pass_rate(lesson.counted, lesson.plan)

    def _learn_pass_rate(self, stats: Stats, plan: DropPlan) -> None:
        """Compare the rows that passed under `plan` with those that were expected by the sample."""
        for name, point in stats.points.items():
            setting = plan.points.get(name)
            if not isinstance(setting, RegionDrop) or point.protected_share > 0.0 or _may_have_late(setting, stats):
                continue
            for laid_out in self._on_plan:  # none fits a plan of regions that have been replaced since
                if laid_out.made(setting):
                    laid_out.passed.setdefault(name, PassRate()).add(
                        point.kept, point.seen * share_passing(laid_out.frequency, setting.keep)
                    )

    def state(self) -> SavedSifter:
        newest, built_from = self._newest.saved(), self._built_from.ravel()
        is_own = self.sample_every == 0 or len(newest.rows) + len(built_from) > _MOST_SAVED
        return SavedSifter(
            None if is_own else newest,
            None if is_own else built_from,
            self._built_for,
            self._drop_points,
            self._plan_room,
            {one.name: {point: replace(rate) for point, rate in one.passed.items()} for one in self._on_plan},
        )

    def restore(self, state: SavedSifter) -> None:
        """Rebuild the regions that were; how many rows passed stays true only of regions that have not changed."""
        self._newest = NewestRows(self._given, self._sample_size)
        self._built_from = self._newest.take()
        if state.newest is not None and state.built_from is not None:
            self._newest.restore(state.newest)
            self._built_from = state.built_from.reshape(-1, self.queries.space.dimensions)
        self._drop_points, self._plan_room = max(state.drop_points, 1), state.plan_room
        self._lay_out(state.built_for)
        for one in self._on_plan:
            one.passed = {point: replace(rate) for point, rate in state.passed.get(one.name, {}).items()}

    def filter(self, share: float) -> RegionFilter:
        """The filter that keeps this share of all rows at a source."""
        return self._made(best(self._candidates, share, self.fairness).built, share)

    def to_bytes(self, share: float) -> bytes:
        """The same as bytes, for `jettison.source.SifterFilter.from_bytes`."""
        return codec.encode(self.filter(share))

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        # Each drop point brings its regions along in the plan.
        drop_points, room = max(len(stats.points), self._drop_points), stats.plan_bytes or self.plan_bytes
        if (drop_points, room) != (self._drop_points, self._plan_room):
            self._drop_points, self._plan_room = drop_points, room
            self._rebuild(self._built_for)
        if budget.share < 1.0:
            self._follow(budget.share)
        points = {name: self._setting(name, point.protected_share, budget) for name, point in stats.points.items()}
        asked = {n: beside_protected(budget.share, one.protected_share) for n, one in stats.points.items()}
        missed = any(abs(one.keep_fraction - asked[name]) > _MET_WITHIN for name, one in points.items())
        cause = budget.cause + ("; no thresholds meet it, these come nearest" if missed else "")
        crowded = sorted(name for name, point in stats.points.items() if point.protected_share > budget.share)
        if crowded:  # nothing is left for a reserve: of the other rows none is kept, and weights say nothing of them
            cause += f"; protected rows alone exceed the budget at {', '.join(crowded)}"
        return DropPlan(version=0, points=points, cause=cause)

    def _follow(self, throttler: float) -> None:
        """Rebuild the regions if the budget's share has drifted, or if the stream has moved away from under them."""
        drifted = self._built_for is None or abs(throttler - self._built_for) > self._drift
        if drifted and self._newest.new >= self._newest.capacity * _NEW_ON_DRIFT:
            self._rebuild(throttler)
        elif self._newest.new >= self._newest.capacity:
            codes = self.queries.space.codes(self._newest.take())
            if any(one.moved(codes) for one in self._on_plan):
                self._rebuild(throttler)

    def _rebuild(self, throttler: float | None) -> None:
        self._built_from = self._newest.take()
        self._lay_out(throttler)

    def _lay_out(self, throttler: float | None) -> None:
        known = Sample.of(self.queries, self._built_from)
        self._candidates = candidates(self.queries, known, regions=self._regions, partitioning=self._partitioning)
        self._on_plan = tuple(_LaidOut(*self._fitting(one, known)) for one in self._candidates)
        self._built_for = throttler

    def _setting(self, name: str, protected_share: float, budget: Budget) -> RegionDrop:
        if budget.share >= 1.0 and budget.late_share >= 1.0:
            return RegionDrop()
        fresh = beside_protected(budget.share, protected_share)
        late = beside_protected(budget.late_share, protected_share)
        # One raster serves both: regions are chosen for the rows that are in time.
        on_plan = self._on_plan  # `rebuild` may replace them meanwhile, from another thread
        chosen = best([one.candidate for one in on_plan], fresh, self.fairness)
        laid_out = next(one for one in on_plan if one.candidate is chosen)
        ratio = laid_out.passed[name].ratio if name in laid_out.passed else 1.0
        keep, late_keep = (self._shares(chosen.built, share, ratio) for share in (fresh, late))
        return RegionDrop(
            keep_fraction=_corrected(share_passing(laid_out.frequency, keep), ratio),
            space=fingerprint(self.queries.space),
            cuts=laid_out.cuts,
            cells=laid_out.cells,
            missing=laid_out.missing,
            keep=keep,
            late_keep_fraction=_corrected(share_passing(laid_out.frequency, late_keep), ratio),
            late_keep=late_keep,
            late_after_s=budget.late_after_s,
        )

    def _shares(self, built: Built, throttler: float, ratio: float) -> tuple[float, ...]:
        """Share kept of each region and of rows outside, with the sample that is kept everywhere."""
        if throttler >= 1.0:
            return (1.0,) * (built.partition.regions + 1)
        sampled = 1.0 / self.sample_every if self.sample_every else 0.0
        asked = min(throttler / ratio, 1.0)
        kept = sampled + (1.0 - sampled) * (1.0 - self._made(built, asked).drop)
        # What is outside is dropped down to the reserve only: rows that are never kept have no weight.
        return (*kept.tolist(), 1.0 if self._outside == "keep" else max(sampled, self.reserve * asked))

    def _made(self, built: Built, throttler: float) -> RegionFilter:
        return built.filter(
            throttler, self.fairness, outside=self._outside, sample_every=self.sample_every, reserve=self.reserve
        )

    def _fitting(self, fitting: Candidate, sample: Sample) -> tuple[Candidate, Raster]:
        """The candidate itself, or the finest of its kind whose raster fits a plan, with that raster."""
        regions, room = fitting.built.partition.boxes, _FILLED * self._plan_room / self._drop_points
        while not fits(raster := Raster.of(fitting.built.partition), fitting.built.partition, room):
            if regions == 1:
                refuse(
                    "room for a region in a plan", f"{room:.0f} bytes", hint="guard fewer streams", error=PlanTooLarge
                )
            regions = max(regions * 3 // 4, 1)
            fitting = fitting.rebuilt(sample, regions)
        assert raster is not None
        return fitting, raster


class _LaidOut:
    """Regions as a plan holds them, and how well their frequencies have told what passes."""

    def __init__(self, candidate: Candidate, raster: Raster) -> None:
        self.candidate = candidate
        self.frequency = candidate.built.statistics.frequency
        self.cuts = tuple(tuple(axis.cuts.tolist()) for axis in raster.axes)
        self.cells = tuple(raster.cells.tolist())
        self.missing = tuple(candidate.built.partition.of_pattern().tolist())
        self.name = f"{zlib.crc32(repr((self.cuts, self.cells, self.missing)).encode()):08x}"
        self.passed: dict[str, PassRate] = {}

    def moved(self, codes: Codes) -> bool:
        """Whether newer rows lie in other regions than the sample did, by more than chance explains."""
        partition = self.candidate.built.partition
        frequency = frequencies(partition, partition.region_of(codes))
        # The mean distance of two samples of the same stream is half of this.
        by_chance = math.sqrt(4.0 * partition.regions / (math.pi * max(len(codes), 1)))
        return float(np.abs(frequency - self.frequency).sum()) / 2.0 > by_chance

    def made(self, setting: RegionDrop) -> bool:
        return (setting.cuts, setting.cells, setting.missing) == (self.cuts, self.cells, self.missing)


def _corrected(expected: float, ratio: float) -> float:
    return expected if expected >= 1.0 else min(expected * ratio, 1.0)


def _may_have_late(setting: RegionDrop, stats: Stats) -> bool:
    """Whether some of a batch's rows may have been kept at the shares of late rows, which its counts do not tell apart."""
    if setting.late_keep is None or setting.late_keep == setting.keep or stats.oldest_arrival_s is None:
        return False
    assert setting.late_after_s is not None
    seen_late = stats.started_s - stats.oldest_arrival_s > setting.late_after_s
    return seen_late or max(setting.late_keep) == 0.0  # of late rows that are all dropped nothing is seen
