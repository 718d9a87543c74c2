"""The random cases themselves: the same seed gives the same case, and together they cover what they are meant to."""

from __future__ import annotations

import json
import math
from pathlib import Path

from jettison.lab.reproduce.window.cases import Outcome, land, make_case
from jettison.policies.window.window_grid import Grid

CASES = [make_case(seed) for seed in range(200)]


def test_a_case_follows_from_its_seed() -> None:
    assert [make_case(seed) for seed in range(200)] == CASES


def test_cases_cover_nesting_overlap_offsets_groups_and_late_rows() -> None:
    assert {len(case.levels) for case in CASES} == {1, 2, 3}
    assert {level.overlaps for case in CASES for level in case.levels} == {True, False}
    assert any(level.size % level.slide for case in CASES for level in case.levels)
    assert any(level.offset % 1_000_000 for case in CASES for level in case.levels)
    assert len({case.groups for case in CASES}) == len({case.delay_ms for case in CASES}) == 3


def test_rows_of_a_case_are_late_within_the_delay_and_beyond_it(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.delay_ms == 4000)
    land(case, tmp_path / "in")
    newest, lateness = "", []
    for file in sorted((tmp_path / "in").iterdir()):
        times = [json.loads(line)["at"] for line in file.read_text().splitlines()]
        lateness.append(sum(time < newest for time in times))
        newest = max(newest, *times)
    assert len(lateness) == case.batches
    assert sum(lateness) > 0


def test_wrong_and_lost_answers_are_found() -> None:
    grid = Grid(10, 10)
    plain = [(0, "a", 1, 2, 3), (10, "a", 1, 2, 3), (20, "a", 1, 2, 3)]
    good = Outcome(plain=plain, shed=[plain[0], plain[2]], marked={1: "d"})
    assert (good.wrong, good.lost(grid)) == ([], [])
    partial = Outcome(plain=plain, shed=[plain[0], (10, "a", 1, 1, 3)], marked={1: "k", 2: "d"})
    assert partial.wrong == [(10, "a", 1, 1, 3)]
    assert partial.lost(grid) == [plain[1]]
    twice = Outcome(plain=plain, shed=[plain[0], plain[0]], marked={1: "d", 2: "d"})
    assert twice.wrong == [plain[0]]


def test_gaps_and_shares_are_read_off_the_marks() -> None:
    outcome = Outcome(marked=dict(enumerate("kkdvddkdkk", start=7)))
    assert outcome.gap == 3, "a void window has no answer, so it neither fills nor ends a gap"
    assert outcome.dropped_share(8) == 0.5
    assert math.isnan(outcome.dropped_share(9))
