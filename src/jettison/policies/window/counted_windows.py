"""Windows that count rows instead of time, dropped whole: a machine for one key, fed row by row.

Window `n` holds the rows number `n * slide` to `n * slide + size - 1` of its key, in the order in which they are fed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jettison.policies.window.window_choice import DecisionState, Runs
from jettison.policies.window.window_grid import Grid


@dataclass(frozen=True, slots=True)
class Counted:
    """What is remembered of one key.

    Parameters
    ----------
    seen
        Rows fed so far.
    decision
        What the decider remembers.
    open
        Windows that are kept and not complete yet, oldest first.
    values
        The rows that those need, from the first row of the oldest on.
    """

    seen: int
    decision: DecisionState
    open: tuple[int, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Keeps or drops each window once, when its first row comes; a kept window is complete, a dropped one leaves no trace.

    Every window that is delivered holds exactly the rows that it would hold if none were ever dropped, and at most
    `decider.max_gap` consecutive windows of a key are missing. A row that only dropped windows hold is not stored.

    Parameters
    ----------
    grid
        Size and slide in rows.
    decider
        Decides the windows of each key by themselves.

    Examples
    --------
    >>> from jettison.policies.window import Runs
    >>> machine = CountWindows(Grid(2, 2), Runs(max_gap=1))
    >>> state, answers = machine.feed(machine.start(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], drop_share=0.5)
    >>> answers
    [(1, (3.0, 4.0))]
    """

    grid: Grid
    decider: Runs

    def start(self) -> Counted:
        return Counted(0, self.decider.start())

    def feed(
        self, state: Counted, values: Iterable[float], drop_share: float
    ) -> tuple[Counted, list[tuple[int, tuple[float, ...]]]]:
        """Take rows in order; return the new state and the windows that are complete now, with their rows."""
        answers: list[tuple[int, tuple[float, ...]]] = []
        for value in values:
            state = self._open(state, drop_share)
            held = (*state.values, value) if state.open else ()
            state = replace(state, seen=state.seen + 1, values=held)
            if state.open and state.seen - state.open[0] * self.grid.slide == self.grid.size:
                window, *rest = state.open
                answers.append((window, held[: self.grid.size]))
                # What only this window needed is forgotten.
                kept = held[(rest[0] - window) * self.grid.slide :] if rest else ()
                state = replace(state, open=tuple(rest), values=kept)
        return state, answers

    def _open(self, state: Counted, drop_share: float) -> Counted:
        """Decide the window that the next row starts, if it starts one."""
        window, within = divmod(state.seen, self.grid.slide)
        if within:
            return state
        drop, decision = self.decider.decide(state.decision, drop_share)
        return replace(state, decision=decision, open=state.open if drop else (*state.open, window))
