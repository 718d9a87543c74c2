"""The paper's own decision, by coins, to compare `Runs` with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from jettison.policies.window.window_choice import check_gap


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
