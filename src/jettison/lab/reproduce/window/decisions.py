"""Whether the deciders, ours and the paper's own by coins, meet the wanted share and the largest gap. Pure."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.policies.window.window_choice import Runs, check_gap, highest_share

_WINDOWS = 1000


@dataclass(frozen=True, slots=True)
class CoinState:
    """The next window, windows dropped since the last one kept, windows to make good for, and the last batch's coin."""

    window: int = 0
    run: int = 0
    owed: float = 0.0
    batch: int | None = None
    coin: bool = False


@dataclass(frozen=True, slots=True)
class CoinPerBatch:
    """The paper's decision: one coin per batch of `max_gap` windows drops the whole batch with the wanted probability.

    Never more than `max_gap` drops in a row. Where two batches in a row are to be dropped, a window is opened in
    between, and made good for by dropping one when a coin says keep. In the long run the share is met while it is
    at most `max_gap / (max_gap + 1)`; beyond that it is that bound.

    Parameters
    ----------
    max_gap
        Most consecutive windows that may be missing, and windows per coin.
    seed
        Coins are hashes of this and the number of the batch: the same windows get the same coins after a restart.
    most_owed
        Cap on the windows to make good for. Without it the debt of a share above the bound would grow for ever and
        then suppress every kept batch.

    Notes
    -----
    Departures from the paper: it looks at the gap only where a batch starts, which lets drops that make good for a
    window join the next batch to a gap of up to 2B - 1; here a window is opened whenever a run reaches B. Its
    debt has no cap.
    """

    max_gap: int
    seed: int = 0
    most_owed: int = 100

    def __post_init__(self) -> None:
        check_gap(self.max_gap)

    def start(self) -> CoinState:
        return CoinState()

    def decide(self, state: CoinState, drop_share: float) -> tuple[bool, CoinState]:
        """Follow the batch's coin, but for a window that must open and one that makes good for it."""
        if drop_share <= 0.0:
            # Nothing is shed any more: debts are forgotten, and the next batch tosses again.
            return False, CoinState(state.window + 1)
        batch = state.window // self.max_gap
        if batch != state.batch:
            state = replace(state, batch=batch, coin=_uniform(self.seed, batch) < drop_share)
        state = replace(state, window=state.window + 1)
        if state.run >= self.max_gap:  # beyond it where the largest gap has just become smaller
            owed = min(state.owed + 1.0, self.most_owed) if state.coin else state.owed
            return False, replace(state, run=0, owed=owed)
        if state.coin:
            return True, replace(state, run=state.run + 1)
        if state.owed >= 1.0:
            return True, replace(state, run=state.run + 1, owed=state.owed - 1.0)
        return False, replace(state, run=0)


def _uniform(seed: int, batch: int) -> float:
    """A number in [0, 1) that depends on the arguments alone."""
    digest = hashlib.blake2b(f"{seed}:{batch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


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
