"""What a running query tells its sifter: the newest rows, each batch once, and the ratio of rows passed to expected."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.policies.regions.following import NewestRows, PassRate, share_passing


def column(*values):
    return np.array(values, dtype=float).reshape(-1, 1)


def test_the_newest_rows_are_remembered_and_a_batch_is_taken_in_once():
    newest = NewestRows(column(*range(10)), at_least=4)
    newest.add(7, "rows", column(20, 21, 22))
    newest.add(7, "rows", column(20, 21, 22))  # told again
    newest.add(7, "other", column(23))  # another drop point of the same batch
    assert newest.new == 4
    rows = newest.take().ravel().tolist()
    assert rows[-4:] == [20, 21, 22, 23]
    assert len(rows) == len(set(rows)) == newest.capacity == 10
    assert newest.new == 0


def test_rows_that_came_sorted_are_not_forgotten_from_one_end():
    newest = NewestRows(column(*np.linspace(0, 1, 1000)), at_least=1000)
    newest.add(1, "rows", column(*[0.5] * 500))
    old = newest.take().ravel()[:500]
    assert old.mean() == pytest.approx(0.5, abs=0.05)
    assert old.std() == pytest.approx(1 / 12**0.5, abs=0.05)


def test_the_ratio_waits_for_enough_rows_stands_still_within_its_tolerance_and_is_bounded():
    passed = PassRate()
    passed.add(500, 400)
    assert passed.ratio == 1.0
    passed.add(11_000, 10_000)
    first = passed.ratio
    assert first == pytest.approx(1.1, abs=0.01)
    passed.add(11_010, 10_000)
    assert passed.ratio == first
    for _ in range(60):
        passed.add(8_000, 10_000)
    assert passed.ratio == pytest.approx(0.8, rel=0.003)
    for _ in range(60):
        passed.add(0, 10_000)
    assert passed.ratio == 0.5


def test_rows_outside_all_regions_count_in_the_share_that_passes():
    assert share_passing(np.array([0.5, 0.3]), [0.2, 1.0, 0.5]) == pytest.approx(0.1 + 0.3 + 0.1)
