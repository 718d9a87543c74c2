"""Random cases of the subset guarantee: windows, nesting, groups, late rows; and what to hold against their outcome."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import DROP, KEEP, VOID

MS = 1000
"""Microseconds in a millisecond."""
START_MS = 1_767_225_600_000
"""The first row's time, but for those that are late: 2026-01-01."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case; its rows and budgets follow from the seed, but for a budget that is given as `keep`."""

    seed: int
    levels: tuple[Grid, ...]
    max_gap: int
    groups: int
    delay_ms: int
    batches: int = 4
    rows_per_batch: int = 500
    span_ms: int = 120_000
    keep: float | None = None

    @property
    def step_ms(self) -> int:
        """Time that a batch covers."""
        return self.span_ms // self.batches


@dataclass
class Outcome:
    """What came out of a case: answers of both sides by window start, group and values, and the rows at the guard.

    `marked` has the mark of every window that the ledger has one for, by the window's number; `changed` counts windows whose
    mark differed between two plans: there must be none.
    """

    plain: list[tuple[Any, ...]] = field(default_factory=list)
    shed: list[tuple[Any, ...]] = field(default_factory=list)
    marked: dict[int, str] = field(default_factory=dict)
    changed: int = 0
    rows_seen: int = 0
    rows_kept: int = 0

    @property
    def wrong(self) -> list[tuple[Any, ...]]:
        """Delivered answers that the query without shedding does not give."""
        return sorted(set(self.shed) - set(self.plain)) + _repeated(self.shed)

    def lost(self, final: Grid) -> list[tuple[Any, ...]]:
        """Answers of windows that were not dropped, and yet were not delivered."""
        missing = set(self.plain) - set(self.shed)
        return sorted(a for a in missing if self.marked.get((a[0] - final.offset) // final.slide) != DROP)

    @property
    def gap(self) -> int:
        """Most consecutive windows dropped, void ones left out."""
        answering = self._marks().replace(VOID, "")
        return max((len(list(run)) for mark, run in itertools.groupby(answering) if mark == DROP), default=0)

    def dropped_share(self, windows: int) -> float:
        """Share of dropped ones among so many windows, the first of them dropped; NaN where fewer were decided."""
        marks = self._marks().lstrip(KEEP)[:windows]
        return marks.count(DROP) / windows if len(marks) == windows else math.nan

    def _marks(self) -> str:
        """One letter a window; those between two plans that nobody marked are kept."""
        windows = range(min(self.marked, default=0), max(self.marked, default=-1) + 1)
        return "".join(self.marked.get(n, KEEP) for n in windows)


def make_case(seed: int) -> Case:
    """A random case."""
    chance = random.Random(seed)
    depth = 1 + seed % 3
    levels = []
    for level in range(depth):
        slide = chance.choice([500, 700, 1000, 1500, 2000, 3000]) * (level + 1)
        size = slide * chance.choice([1, 1, 2, 3]) + chance.choice([0, 0, 0, slide // 3])
        offset = chance.choice([0, 0, 250, slide // 2, 333])
        levels.append(Grid(size * MS, slide * MS, offset * MS))
    return Case(
        seed=seed,
        levels=tuple(levels),
        max_gap=chance.choice([1, 2, 4, 8]),
        groups=chance.choice([1, 3, 8]),
        delay_ms=chance.choice([0, 1000, 4000]),
    )


def long_case(seed: int, keep: float, max_gap: int) -> Case:
    """Well over a thousand tumbling windows, decided plan by plan under a load that does not change."""
    grid = Grid(100 * MS, 100 * MS)
    return Case(seed, (grid,), max_gap, 1, 0, batches=6, rows_per_batch=800, span_ms=160_000, keep=keep)


def land(case: Case, folder: Path) -> None:
    """One file a batch: time goes on, a tenth of the rows is late within the delay, a few are too late."""
    chance = random.Random(case.seed)
    folder.mkdir(parents=True)
    step = case.step_ms
    for batch in range(case.batches):
        lines = []
        for i in range(case.rows_per_batch):
            at = START_MS + batch * step + step * i // case.rows_per_batch
            if (luck := chance.random()) < 0.1:
                at -= chance.randint(0, case.delay_ms)
            elif luck < 0.12:
                at -= case.delay_ms + chance.randint(0, 20_000)
            number = batch * case.rows_per_batch + i
            time = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
            lines.append(json.dumps({"g": f"g{chance.randrange(case.groups)}", "value": number, "at": time}))
        path = folder / f"{batch:03d}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (START_MS / 1000 + batch,) * 2)  # files are taken in the order of their age


def _repeated(answers: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted({answer for answer in answers if answers.count(answer) > 1})
