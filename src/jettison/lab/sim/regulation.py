"""Who decides in the simulated engine, and how the decisions reach its batches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jettison.core.stats import Budget, Stats

if TYPE_CHECKING:
    from jettison.lab.sim.plant import PlantSettings

IDLE_AFTER_S = 10.0
"""Silence of the source after which the engine reports, at its next trigger, that it is idle; as Spark does."""

_LEAD_S = 0.1  # from the making of a plan to the time from which it counts


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Keep at most this many rows per second of waiting time, whatever arrives."""

    rows_per_s: float


class Regulator(Protocol):
    """What the plant asks for decisions; `jettison.control.controller.Controller` is one."""

    def initial(self) -> Budget | RateLimit:
        """Setting for the first batch."""

    def step(self, stats: Stats) -> Budget | RateLimit:
        """Setting after a batch."""

    def forecast(
        self, now_s: float, *, running: bool = True, produced: tuple[float, float] | None = None
    ) -> Budget | RateLimit:
        """Setting while a batch runs, or while the engine waits for one."""

    def planned(self, version: int, from_s: float) -> None:
        """The last setting is plan `version` and counts from `from_s`."""

    def idle(self, now_s: float) -> Budget | RateLimit:
        """Setting when nothing arrives."""


class SimulatedChannel:
    """Carries settings to batches: a new version only when the setting has changed, in force from a stated time."""

    def __init__(
        self,
        known: PlantSettings,
        regulator: Regulator,
        version: int,
        now_s: float,
        produced_by: Callable[[float], float | None],
    ) -> None:
        self._known = known
        self._produced_by = produced_by
        self._regulator = regulator
        self._plans = [(-math.inf, version, regulator.initial())]
        regulator.planned(version, now_s)
        self._reports: deque[Stats] = deque()
        self._next_tick_s = now_s + known.tick_s
        self._started_s = self._free_s = now_s
        self._idle = False
        self.reported = 0

    @property
    def version(self) -> int:
        """Of the newest plan."""
        return self._plans[-1][1]

    def committed(self, stats: Stats) -> None:
        """Note a batch, which is reported some time later."""
        self._reports.append(stats)
        self._started_s, self._free_s = stats.started_s, stats.committed_s
        self._idle = False
        self.reported += 1

    def advance(self, until_s: float) -> None:
        """Let reports, ticks and silence have their effect, up to the start of the next batch."""
        while True:
            report_s = self._reports[0].committed_s + self._known.report_delay_s if self._reports else math.inf
            idle_s = math.inf if self._idle or not self.reported else self._idle_s()
            now_s = min(report_s, self._next_tick_s, idle_s)
            if now_s >= until_s:
                return
            if now_s == report_s:
                self._send(self._regulator.step(self._reports.popleft()), now_s)
            elif now_s == idle_s:
                self._idle = True
                self._send(self._regulator.idle(now_s), now_s)
            else:
                self._next_tick_s += self._known.tick_s
                self._send(self._forecast(now_s), now_s)

    def _forecast(self, now_s: float) -> Budget | RateLimit:
        rows = self._produced_by(now_s)
        told = None if rows is None else (now_s, rows)
        return self._regulator.forecast(now_s, running=now_s < self._free_s, produced=told)

    def _idle_s(self) -> float:
        silent_s, interval_s = self._free_s + IDLE_AFTER_S, self._known.trigger_interval_s
        if interval_s == 0:
            return silent_s
        return self._started_s + interval_s * math.ceil((silent_s - self._started_s) / interval_s)

    def in_force(self, start_s: float) -> tuple[int, Budget | RateLimit]:
        """The plan of a batch that starts then."""
        _, version, setting = next(plan for plan in reversed(self._plans) if plan[0] <= start_s)
        return version, setting

    def _send(self, setting: Budget | RateLimit, now_s: float) -> None:
        _, version, last = self._plans[-1]
        if _values(setting) != _values(last):
            self._plans.append((now_s + _LEAD_S, version + 1, setting))
            self._regulator.planned(version + 1, now_s + _LEAD_S)


def _values(setting: Budget | RateLimit) -> tuple[float, ...]:
    if isinstance(setting, RateLimit):
        return (setting.rows_per_s,)
    if setting.share == setting.late_share:
        return (setting.share,)
    return (setting.share, setting.late_share, setting.late_after_s)
