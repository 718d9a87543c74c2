"""How rows arrive, in capacities of the plain query: a step, a square wave, a sine, a curve from real life."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jettison.lab.demo.schedule import Phase

CALM = 0.5
"""Load beside the overload, in capacities."""
_STEPS = 10  # of a sine's period, as in NEXMark


@dataclass(frozen=True, slots=True)
class Load:
    """Phases, and from when to when more arrives than fits, in seconds since the start; both 0 where nothing is too much."""

    phases: tuple[Phase, ...]
    begin_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        return sum(phase.duration_s for phase in self.phases)

    @property
    def peak_rows_per_s(self) -> float:
        return max(phase.rows_per_s for phase in self.phases)


Shape = Callable[[float, float], Load]
"""Makes a load of a capacity in rows a second and a length in seconds."""


def step(times: float) -> Shape:
    """An eighth of the time calm, then `times` the capacity for half of it, then calm.

    >>> load = step(3.0)(1000.0, 40.0)
    >>> [(phase.duration_s, phase.rows_per_s) for phase in load.phases], load.begin_s, load.end_s
    ([(5.0, 500.0), (20.0, 3000.0), (15.0, 500.0)], 5.0, 25.0)
    """

    def made(capacity: float, seconds: float) -> Load:
        lengths = (seconds / 8, seconds / 2, seconds * 3 / 8)
        phases = tuple(Phase(length, of * capacity) for length, of in zip(lengths, (CALM, times, CALM), strict=True))
        return Load(phases, lengths[0], lengths[0] + lengths[1])

    return made


def constant(times: float) -> Shape:
    """`times` the capacity from beginning to end."""
    return lambda capacity, seconds: Load((Phase(seconds, times * capacity),), 0.0, seconds if times > 1.0 else 0.0)


def square(times: float, periods: int = 3) -> Shape:
    """Calm and `times` the capacity in turn, for equal lengths."""

    def made(capacity: float, seconds: float) -> Load:
        half = seconds / (2 * periods)
        return Load(tuple(Phase(half, of * capacity) for of in (CALM, times) * periods), half, seconds)

    return made


def sine(times: float, periods: int = 2) -> Shape:
    """Between calm and `times` the capacity, in ten steps a period, as NEXMark has it.

    >>> load = sine(3.0)(100.0, 40.0)
    >>> len(load.phases), round(load.phases[5].rows_per_s), round(load.phases[0].rows_per_s)
    (20, 300, 50)
    """

    def made(capacity: float, seconds: float) -> Load:
        low, high = CALM * capacity, times * capacity
        rates = [
            (high + low) / 2 - (high - low) / 2 * math.cos(2 * math.pi * place / _STEPS) for place in range(_STEPS)
        ]
        phases = tuple(Phase(seconds / (_STEPS * periods), rate) for rate in rates * periods)
        return Load(phases, 0.0, seconds)

    return made


def curve(rates: Sequence[float], times: float) -> Shape:
    """Rates of a real stream in their order, the highest of them `times` the capacity.

    >>> [phase.rows_per_s for phase in curve([1, 4, 2], 2.0)(100.0, 30.0).phases]
    [50.0, 200.0, 100.0]
    """

    def made(capacity: float, seconds: float) -> Load:
        highest = max(rates)
        phases = tuple(Phase(seconds / len(rates), times * capacity * rate / highest) for rate in rates)
        over = [place for place, phase in enumerate(phases) if phase.rows_per_s > capacity]
        ends = (over[0], over[-1] + 1) if over else (0, 0)
        return Load(phases, *(seconds * end / len(rates) for end in ends))

    return made
