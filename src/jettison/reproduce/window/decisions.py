"""Do the deciders meet the wanted share and the largest gap? Pure, thousands of courses."""

from __future__ import annotations

import itertools

import numpy as np

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.windows.decide import CoinPerBatch, Decider, Runs, highest_share

_WINDOWS = 1000


def decisions(settings: RunSettings) -> tuple[list[Claim], Section]:
    """Shares and gaps of both deciders over 1,000 windows."""
    random = np.random.default_rng(settings.seed)
    courses = 200 if settings.quick else 2000
    rows: list[list[object]] = []
    worst_share, worst_gap = 0.0, -np.inf
    for gap in (1, 2, 5, 10):
        shares: list[float] = []
        gaps: list[int] = []
        for _ in range(courses // 4):
            p, first = float(random.random()), int(random.integers(0, 10**6))
            dropped = decide(Runs(gap), p, first, _WINDOWS)
            shares.append(abs(sum(dropped) / _WINDOWS - min(p, highest_share(gap))))
            gaps.append(longest_gap(dropped) - gap)
        rows.append([f"runs, B = {gap}", max(shares), max(gaps)])
        worst_share, worst_gap = max(worst_share, *shares), max(worst_gap, *gaps)
    spread = _coin_spread(settings.seed, courses)
    rows.append(["coin, p = 0.5, B = 10, over 100 windows", spread[0], spread[1]])
    config = {"windows": _WINDOWS, "courses": courses, "seed": settings.seed}
    claims = [
        Claim(
            "share-met",
            "dropped share within 0.01 of min(p, B/(B+1)) over 1,000 windows",
            "p and B are both satisfied",
            worst_share,
            at_most=0.01,
            config=config,
        ),
        Claim("gap-met", "largest gap minus B", "never exceeds B", float(worst_gap), at_most=0.0, config=config),
    ]
    header = ["decider", "worst deviation of the share (coin: standard deviation)", "largest gap minus B"]
    return claims, Section("Decisions", table(header, rows))


def decide(decider: Decider, drop_share: float, first: int, windows: int) -> list[bool]:
    """Decide `windows` windows from `first` on."""
    state, dropped = decider.start(), []
    for window in range(first, first + windows):
        drop, state = decider.decide(state, window, drop_share)
        dropped.append(drop)
    return dropped


def longest_gap(dropped: list[bool]) -> int:
    """Most drops in a row."""
    return max((len(list(run)) for drop, run in itertools.groupby(dropped) if drop), default=0)


def _coin_spread(seed: int, courses: int) -> tuple[float, float]:
    shares, gaps = [], []
    for course in range(courses):
        dropped = decide(CoinPerBatch(10, seed=seed * 100_003 + course), 0.5, 0, 100)
        shares.append(np.mean(dropped))
        gaps.append(longest_gap(dropped) - 10)
    return float(np.std(shares)), float(max(gaps))
