"""Which windows to drop: at most `max_gap` in a row, and in the long run the share that was asked for.

A decider is a pure step function: its state goes in and comes out, so that it can travel in the plan and survive a
restart. Windows are decided in order, each once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Protocol

from jettison.errors import InvalidSetting, explain

_WHOLE_WINDOW = 1.0 - 1e-9  # sums of shares carry rounding errors


@dataclass(frozen=True, slots=True)
class DecisionState:
    """What a decider remembers between two windows.

    Parameters
    ----------
    run
        Windows dropped since the last one kept.
    owed
        Windows that should have been dropped by now but were not; negative while drops run ahead of the share.
    batch
        Number of the batch whose coin was tossed last; only the coin uses it.
    coin
        Whether that coin said drop.
    """

    run: int = 0
    owed: float = 1.0
    batch: int | None = None
    coin: bool = False


class Decider(Protocol):
    """Decides window after window."""

    @property
    def max_gap(self) -> int:
        """Most consecutive windows that may be missing."""
        ...

    def start(self) -> DecisionState:
        """State before the first window."""
        ...

    def decide(self, state: DecisionState, window: int, drop_share: float) -> tuple[bool, DecisionState]:
        """Whether to drop `window`, and the state after it."""
        ...

    def kept(self, state: DecisionState) -> DecisionState:
        """State after a window that was kept without asking, because nothing had to be shed."""
        ...


def highest_share(max_gap: int) -> float:
    """Largest share of windows that can be dropped: one of every `max_gap + 1` must be delivered.

    >>> highest_share(3)
    0.75
    """
    return max_gap / (max_gap + 1)


@dataclass(frozen=True, slots=True)
class Runs:
    """Drops in runs, with as many windows kept in between as the share asks for: the error is carried on.

    Never more than `max_gap` drops in a row, and after any number of windows under shares `p` the drops differ from
    the sum of `min(p, max_gap / (max_gap + 1))` by at most `max(run, 1)`.

    Parameters
    ----------
    max_gap
        Most consecutive windows that may be missing; the paper's batch size B.
    run
        Least length of a run, from 1 to `max_gap`. Long runs let more rows of overlapping windows be dropped early;
        where windows do not overlap, 1 spreads drops evenly. `None` means `max_gap`.

    Examples
    --------
    >>> decider = Runs(max_gap=2)
    >>> state, text = decider.start(), ""
    >>> for window in range(12):
    ...     drop, state = decider.decide(state, window, 0.5)
    ...     text += "d" if drop else "k"
    >>> text
    'ddkddkkddkkd'

    Notes
    -----
    Departure from the paper: no coin. Over 100 windows the share that coins deliver varies by 0.165 (standard
    deviation at p = 0.5, B = 10); this one meets it to within one run.
    """

    max_gap: int
    run: int | None = None

    def __post_init__(self) -> None:
        _check_gap(self.max_gap)
        if self.run is not None and not 1 <= self.run <= self.max_gap:
            raise InvalidSetting(
                explain(
                    f"`run` must lie in [1, max_gap = {self.max_gap}]",
                    repr(self.run),
                    hint="leave it out for the longest runs, or raise max_gap",
                )
            )

    def start(self) -> DecisionState:
        """One window is owed, so that shedding begins with the first window it may."""
        return DecisionState()

    def decide(self, state: DecisionState, window: int, drop_share: float) -> tuple[bool, DecisionState]:
        """Go on with a run, start one when a whole window is owed, else keep."""
        if drop_share <= 0.0:
            return False, self.kept(state)
        owed = state.owed + min(drop_share, highest_share(self.max_gap))
        shortest = self.max_gap if self.run is None else self.run
        within_run = 0 < state.run < shortest
        if state.run < self.max_gap and (within_run or owed >= _WHOLE_WINDOW):
            return True, replace(state, run=state.run + 1, owed=owed - 1.0)
        return False, replace(state, run=0, owed=owed)

    def kept(self, state: DecisionState) -> DecisionState:
        """A window delivered while nothing is shed makes good for one that was dropped ahead of the share."""
        return replace(state, run=0, owed=min(state.owed + 1.0, 1.0))


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
        _check_gap(self.max_gap)

    def start(self) -> DecisionState:
        """Nothing is owed."""
        return DecisionState(owed=0.0)

    def decide(self, state: DecisionState, window: int, drop_share: float) -> tuple[bool, DecisionState]:
        """Follow the batch's coin, but for a window that must open and one that makes good for it."""
        if drop_share <= 0.0:
            return False, self.kept(state)
        batch = window // self.max_gap
        if batch != state.batch:
            state = replace(state, batch=batch, coin=_uniform(self.seed, batch) < drop_share)
        if state.run >= self.max_gap:  # beyond it where the largest gap has just become smaller
            owed = min(state.owed + 1.0, self.most_owed) if state.coin else state.owed
            return False, replace(state, run=0, owed=owed)
        if state.coin:
            return True, replace(state, run=state.run + 1)
        if state.owed >= 1.0:
            return True, replace(state, run=state.run + 1, owed=state.owed - 1.0)
        return False, replace(state, run=0)

    def kept(self, state: DecisionState) -> DecisionState:
        """Nothing is shed any more: debts are forgotten, and the next batch tosses anew."""
        return self.start()


def _uniform(seed: int, batch: int) -> float:
    """A number in [0, 1) that depends on the arguments alone."""
    digest = hashlib.blake2b(f"{seed}:{batch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _check_gap(max_gap: int) -> None:
    if not (isinstance(max_gap, int) and max_gap >= 1):
        raise InvalidSetting(
            explain("`max_gap` must be a whole number from 1", repr(max_gap), hint="1 allows every other window to go")
        )
