"""What can be held at a given load, and what share of a batch's rows that allows: the control law, without memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jettison.control.control_settings import ControlSettings
from jettison.control.load_model import Costs

REACHABLE = 1.25
"""Times the least latency that can be had: nothing is dropped to get closer to it."""
_MARGIN = 0.3  # of the scatter of a row's latency: what batches that keep everything must stay away from the bound
_LEAST_SPARE = 0.05  # of the capacity, as far as that scatter goes: less than this to spare is as bad
_USUAL_NOISE = 0.15  # scatter that the headroom is meant for; what is beyond it needs more of the bound
_DELIVERY = 0.15  # of the bound, what is given up at most for rows that are offered late
_DECAY = 0.3  # of a batch's deviation from the target length, the part that the next one may still have
_SHORTEST = 0.5  # of the target length: a batch is never shortened further to save rows that waited too long
_LOWEST, _HIGHEST = 0.4, 1.08  # times the sustainable share: how far one batch's may lie from it
_HELPS, _HELPS_BEHIND = 0.1, 1 / 3  # of a batch's length, what dropping must save; where latency grows all the same
_LEAVE_AT = 1.03  # sustainable share from which the load is below capacity for certain


@dataclass(frozen=True, slots=True)
class Ahead:
    """The batch that will run under the budget being made: how long its oldest row has waited, and its rows."""

    wait_s: float
    fresh: float
    late: float

    @property
    def rows(self) -> float:
        return self.fresh + self.late

    def kept(self, share: float, late_share: float) -> float:
        """Rows that these shares keep."""
        return share * self.fresh + late_share * self.late

    def duration_s(self, costs: Costs, share: float, late_share: float) -> float:
        """What the batch takes under these shares."""
        return costs.predict(self.rows, self.kept(share, late_share))


@dataclass(frozen=True, slots=True)
class Outlook:
    """What batches cost, how fast rows arrive, and what follows from it for the bound.

    Parameters
    ----------
    settings, costs, rate
        What is asked for; what batches cost; rows that arrive per second.
    cap
        Most rows that a batch can hold.
    offset_s
        Age of a batch's newest rows that shedding cannot change.
    noise
        Relative scatter of batches' lengths.
    least_share
        Share that must be processed at least: what the settings ask for, or rows that are protected.
    """

    settings: ControlSettings
    costs: Costs
    rate: float
    cap: float = math.inf
    offset_s: float = 0.0
    noise: float = 0.0
    least_share: float = 0.0

    @property
    def least_latency_s(self) -> float:
        """Latency that the least share allowed settles at; infinite when merely seeing the rows takes too long."""
        return self._settles_s(self.least_share)

    @property
    def settles_s(self) -> float:
        """Latency that batches which keep everything settle at; infinite at loads that they cannot keep up with."""
        return self._settles_s(1.0)

    def _settles_s(self, share: float) -> float:
        costs, interval_s = self.costs, self.settings.trigger_interval_s
        load = self._load(share)
        duration_s = costs.fixed_s + load * interval_s
        if duration_s > interval_s:
            duration_s = costs.fixed_s / (1 - load) if load < 1 else math.inf
        return duration_s + max(duration_s, interval_s)

    def _load(self, share: float) -> float:
        """Seconds of work on rows that arrive in a second, at this share."""
        return self.rate * (self.costs.per_seen_row_s + share * self.costs.per_kept_row_s)

    @property
    def goal_s(self) -> float:
        """Latency to aim at: a part of the bound, or a quarter more than the least that can be had where that is more.

        To drop nearly everything for a little less latency is a bad bargain; so is to drop anything where keeping all
        settles within the bound, or much where it settles a little past it. Slow delivery takes its part of the bound, a
        small one: what looks like a very slow one is another clock.
        """
        goal_s = self.settings.headroom * self.bound_s * (1 - min(max(self.noise - _USUAL_NOISE, 0.0), 0.5))
        nearest_s, settles_s = self.usable * self.bound_s, self.settles_s
        past = min(max(settles_s / self.bound_s - 1, 0.0), 1.0)
        goal_s = max(goal_s, min(settles_s, nearest_s - past * (nearest_s - goal_s)))
        least_s = self.least_latency_s
        return max(goal_s, REACHABLE * least_s) if least_s < math.inf else goal_s

    @property
    def usable(self) -> float:
        """Part of the bound at which batches that keep all may settle: what scatters, or catches up slowly, needs room.

        A batch holds what came while the one before it ran, so a deviation fades from batch to batch by the load, and
        latencies, sums of two lengths, scatter by `noise / sqrt(2 * (1 - load))`.
        """
        spare = max(1 - self._load(1.0), _LEAST_SPARE)
        return 1 - min(_MARGIN * self.noise / math.sqrt(2 * spare), 0.5)

    @property
    def bound_s(self) -> float:
        """What is left of the latency bound behind the source."""
        return self.settings.latency_bound_s - self.delivery_s

    @property
    def delivery_s(self) -> float:
        """What slow delivery takes of the latency bound; what is beyond it is another clock."""
        return min(max(self.offset_s, 0.0), _DELIVERY * self.settings.latency_bound_s)

    @property
    def limit_s(self) -> float:
        """The bound, or where that cannot be held, what takes its place."""
        return max(self.bound_s, self.goal_s)

    @property
    def enough_s(self) -> float:
        """Latency up to which all rows are kept."""
        return max(self.usable * self.bound_s, self.goal_s)

    @property
    def target_s(self) -> float:
        """Batch length to aim at: a row waits for one batch at worst and is then processed in the next."""
        goal_s, interval_s = self.goal_s, self.settings.trigger_interval_s
        target_s = goal_s - max(goal_s / 2, interval_s)
        if math.isfinite(self.cap) and self.rate > 0:
            # Batches that the cap keeps small must be shorter, or the source falls behind.
            target_s = min(target_s, 0.9 * max(self.cap / self.rate, interval_s))
        return target_s

    @property
    def sustainable(self) -> float:
        """Share that batches of the target length can keep at this rate; above 1 when there is capacity to spare."""
        rows = self.usual_rows
        return self.costs.kept_within(self.target_s, rows) / rows if rows > 0 else math.inf

    @property
    def usual_rows(self) -> float:
        """Rows of a batch that comes after one of the target length."""
        return self.rate * max(self.target_s, self.settings.trigger_interval_s)

    @property
    def capacity_rows_per_s(self) -> float:
        """Highest rate at which everything can be kept."""
        return self.costs.capacity_rows_per_s(self.target_s)

    def dropping_helps(self, ahead: Ahead) -> bool:
        """Whether dropping makes the batch shorter by enough: else its fixed cost, or seeing its rows, is most of it."""
        all_s = ahead.duration_s(self.costs, 1.0, 1.0)
        least_s = self.costs.predict(ahead.rows, self.least_share * ahead.rows)
        return all_s - least_s >= self.least_saving * all_s

    @property
    def least_saving(self) -> float:
        """Part of a batch's length that dropping must save: more where latency grows whatever is dropped."""
        return _HELPS_BEHIND if self.falls_behind else _HELPS

    @property
    def falls_behind(self) -> bool:
        """Whether rows come faster than they can be seen, the least share kept: too many, or in batches capped too small."""
        costs, rows = self.costs, max(self.cap, 1.0)
        row_s = costs.fixed_s / rows + costs.per_seen_row_s + self.least_share * costs.per_kept_row_s
        return self.rate * row_s > 1

    def must_shed(self, ahead: Ahead) -> bool:
        """Whether keeping all would break the bound, or leave the batch after it beyond rescue, and dropping helps."""
        if not self.dropping_helps(ahead):
            return False
        all_s = ahead.duration_s(self.costs, 1.0, 1.0)
        sustainable, enough_s = self.sustainable, self.enough_s
        if sustainable >= _LEAVE_AT or self.settles_s <= enough_s:
            # The next batches catch up by themselves: only the bound itself counts.
            return ahead.wait_s + all_s > self.limit_s
        return ahead.wait_s + all_s > enough_s or not self._can_wait(all_s, sustainable)

    @property
    def may_leave(self) -> bool:
        """Whether the load is below capacity for certain."""
        return self.sustainable >= _LEAVE_AT or self.settles_s <= self.goal_s

    def _can_wait(self, all_s: float, sustainable: float) -> bool:
        """Whether rows may be delayed now: the next batch can still be saved by keeping half the sustainable share."""
        if sustainable >= 1:
            return True
        wait_s = max(all_s, self.settings.trigger_interval_s)
        after = Ahead(wait_s, self.rate * wait_s, 0.0)
        half = max(sustainable / 2, 0.0)
        return wait_s + after.duration_s(self.costs, half, half) <= self.goal_s

    def shares(self, ahead: Ahead) -> tuple[float, float]:
        """Shares of fresh and of late rows that bring the batch near the target length; late rows go first."""
        target_s = self.target_s
        period_s = max(target_s, self.settings.trigger_interval_s)
        limit_s = target_s + _DECAY * (ahead.wait_s - period_s)
        # A batch that waited too long is shortened once; past half the target its oldest rows are lost anyway.
        limit_s = min(limit_s, self.limit_s - ahead.wait_s)
        limit_s = max(limit_s, _SHORTEST * target_s)
        room = self.costs.kept_within(limit_s, ahead.rows)
        keep = (room - self.settings.late_share * ahead.late) / ahead.fresh if ahead.fresh > 0 else 1.0
        # One odd batch must not throw the share far from what can be sustained: with a lag that rings for long.
        keep = min(max(keep, self.sustainable * _LOWEST), self.sustainable * _HIGHEST)
        keep = min(max(keep, self.least_share), 1.0)
        late = (room - keep * ahead.fresh) / ahead.late if ahead.late > 0 else 0.0
        late = max(late, self.settings.late_share)
        return keep, min(late, keep)
