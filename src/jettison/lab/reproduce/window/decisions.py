"""Whether the deciders meet the wanted share and the largest gap. Pure, thousands of courses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.window.coin_per_batch import CoinPerBatch
from jettison.policies.window.window_choice import Runs, highest_share

_WINDOWS = 1000


def decisions(settings: RunSettings) -> Judged:
    """Shares and gaps of both deciders: of runs over 1,000 windows, of the coin over 100."""
    random = np.random.default_rng(settings.seed)
    courses = 200 if settings.quick else 2000
    rows: list[list[object]] = []
    worst: list[tuple[float, float]] = []
    for gap in (1, 2, 5, 10):
        found = []
        for _ in range(courses // 4):
            p = float(random.random())
            share, longest = _share_and_gap(Runs(gap), p, _WINDOWS)
            found.append((abs(share - min(p, highest_share(gap))), longest - gap))
        worst.append((max(off for off, _ in found), max(over for _, over in found)))
        rows.append([f"runs, B = {gap}", *worst[-1]])
    coins = [_share_and_gap(CoinPerBatch(10, seed=settings.seed * 100_003 + n), 0.5, 100) for n in range(courses)]
    spread = float(np.std([share for share, _ in coins]))
    rows.append(["coin, p = 0.5, B = 10, over 100 windows", spread, max(longest for _, longest in coins) - 10])
    figures = {"share-met": max(off for off, _ in worst), "gap-met": float(max(over for _, over in worst))}
    header = ["decider", "worst deviation of the share (coin: standard deviation)", "largest gap minus B"]
    config = {"windows": _WINDOWS, "courses": courses, "seed": settings.seed}
    return [Section("Decisions", table(header, rows))], judge("window", figures, config)


def _share_and_gap(decider: Runs | CoinPerBatch, drop_share: float, windows: int) -> tuple[float, int]:
    """Decide so many windows: the share dropped, and the longest gap."""
    state: Any = decider.start()
    dropped = []
    for _ in range(windows):
        drop, state = decider.decide(state, drop_share)
        dropped.append(drop)
    return sum(dropped) / windows, longest_gap(dropped)


def longest_gap(dropped: list[bool]) -> int:
    """Most drops in a row."""
    return max((len(list(run)) for drop, run in itertools.groupby(dropped) if drop), default=0)
