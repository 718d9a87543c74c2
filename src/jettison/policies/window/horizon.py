"""Marks for a horizon of windows: extended ahead of time, trimmed behind the watermark, never altered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jettison.policies.window.query_fan import Branch, Fan
from jettison.policies.window.window_choice import DecisionState, Runs
from jettison.policies.window.window_marks import DROP, KEEP, VOID, WindowMarks

MOST_MARKS = 2000
"""Most windows marked at once, over all queries: about 40 kB of plan at worst."""


def begin(fan: Fan, watermark: int) -> WindowMarks:
    """Empty marks from the first window on that is still open at `watermark`."""
    unit = fan.first_unit_open_at(watermark - _retained(fan))
    first = tuple(fan.windows(branch, unit).start for branch in fan.branches)
    return WindowMarks(first, ("",) * len(first), ((),) * len(first), next_unit=unit)


def furthest_unit(fan: Fan, marks: WindowMarks) -> int:
    """The first unit that there is no room for, were every unit before it marked."""
    assert marks.next_unit is not None
    marked = sum(map(len, marks.marks))
    per_unit = sum(map(fan.windows_in_unit, fan.branches))
    return marks.next_unit + max(MOST_MARKS - marked, 0) // per_unit


def extend(fan: Fan, marks: WindowMarks, decider: Runs, *, begun: int, until: int, drop_share: float) -> WindowMarks:
    """Decide the units from the first undecided one to `until` (exclusive).

    Units before `begun` are kept: rows of theirs may have come already. Nothing that `marks` holds changes.
    """
    assert marks.next_unit is not None
    added = ["" for _ in fan.branches]
    state = DecisionState(marks.run, marks.owed)
    for unit in range(marks.next_unit, max(until, marks.next_unit)):
        run = state.run
        if unit < begun:
            dropped, state = False, decider.kept(state)
        elif fan.void(unit):
            dropped = False
        else:
            dropped, state = decider.decide(state, drop_share)
        if not dropped and fan.partly_void(unit):
            state = replace(state, run=run)  # a query without an answer here still waits for one
        for place, branch in enumerate(fan.branches):
            decided = DROP if dropped or (unit >= begun and branch.name in marks.shut) else KEEP
            added[place] += "".join(VOID if branch.pipeline.void(n) else decided for n in fan.windows(branch, unit))
    letters = [old + new for old, new in zip(marks.marks, added, strict=True)]
    extended = replace(marks, run=state.run, owed=state.owed, next_unit=max(until, marks.next_unit))
    return _with_letters(fan, extended, marks.first, letters)


def trim(fan: Fan, marks: WindowMarks, watermark: int) -> WindowMarks:
    """Forget the marks of windows that closed long before `watermark`: no row of theirs is accepted any more."""
    first, letters = [], []
    for branch, start, old in zip(fan.branches, marks.first, marks.marks, strict=True):
        open_from = branch.pipeline.final.first_ending_after(watermark - _retained(fan))
        gone = min(max(open_from - start, 0), len(old))
        first.append(start + gone)
        letters.append(old[gone:])
    return _with_letters(fan, marks, first, letters)


def drops_open_at(fan: Fan, marks: WindowMarks, watermark: int) -> bool:
    """Whether some window that is marked as dropped is still open."""
    return not trim(fan, marks, watermark).keeps_everything


def _retained(fan: Fan) -> int:
    # A window is emitted once the watermark passes its end; marks stay for a while longer, so that no lag of a nested
    # level or of the report can find them gone.
    return max(branch.pipeline.reach + 2 * branch.pipeline.final.size for branch in fan.branches)


def _with_letters(fan: Fan, marks: WindowMarks, first: Sequence[int], letters: Sequence[str]) -> WindowMarks:
    opens = tuple(_opens(*each) for each in zip(fan.branches, first, letters, strict=True))
    return replace(marks, first=tuple(first), marks=tuple(letters), opens_us=opens)


def _opens(branch: Branch, first: int, letters: str) -> tuple[int | None, ...]:
    """For each window the first time that the next kept one needs; windows not marked yet count as kept."""
    opens = branch.pipeline.need_near(first + len(letters), 1)[0]
    result: list[int | None] = []
    for place in range(len(letters) - 1, -1, -1):
        if letters[place] == KEEP:
            need = branch.pipeline.need(first + place)
            assert need is not None
            opens = need[0]
        result.append(None if letters[place] == KEEP else opens)
    return tuple(reversed(result))
