"""The book of open panes counts what came, closes what is over, and tells how concepts moved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.stats import Budget, PointStats, Stats
from jettison.policies import ConceptDrop
from jettison.policies.groups.group_keys import PANES, packed
from jettison.policies.groups.group_setting import GroupDrop, keep_shares
from jettison.policies.groups.pane_book import IDLE_SAMPLE, KeptGroups, PaneBook

PANE_S = 600

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5), st.integers(1, 9)), max_size=30)


@given(st.lists(rows, max_size=6))
def test_every_row_is_counted_in_its_pane(batches):
    book = PaneBook(100)
    expected: dict[tuple[int, int], int] = {}
    for number, batch in enumerate(batches):
        book.add([100 * p for p, _, _ in batch], [g for _, g, _ in batch], [n for _, _, n in batch], newest_us=number)
        for pane, group, count in batch:
            expected[100 * pane, group] = expected.get((100 * pane, group), 0) + count
    found = {(t.start_us, k): n for t in book.tallies for k, n in zip(t.keys.tolist(), t.seen.tolist(), strict=True)}
    assert found == expected


def test_kept_rows_follow_from_the_setting_that_the_batch_ran_under():
    book = PaneBook(100)
    setting = GroupDrop(0.5, 100, (0,), (1.0,), ((7,),), ((0.1,),), new_keep_fraction=0.2)
    book.add([0, 0, 100], [7, 8, 7], [50, 3, 10], newest_us=150, setting=setting)
    first, second = book.tallies
    assert first.kept_of == pytest.approx(np.array([5.0, 3.0]))
    assert first.kept == pytest.approx(8.0)
    assert second.kept_of == pytest.approx(np.array([2.0]))


def test_progress_follows_event_time_also_for_panes_without_new_rows():
    book = PaneBook(100)
    book.add([0], [1], [1], newest_us=20)
    assert book.tallies[0].progress == pytest.approx(0.2)
    book.add([], [], [], newest_us=70)
    assert book.tallies[0].progress == pytest.approx(0.7)
    book.add([], [], [], newest_us=50)  # time does not run backwards
    assert book.tallies[0].progress == pytest.approx(0.7)


def test_a_pane_closes_when_the_watermark_passes_its_end_and_late_rows_do_not_open_it_again():
    book = PaneBook(100)
    book.add([0, 100], [1, 2], [4, 4], newest_us=150)
    assert book.close(99) == []
    (closed,) = book.close(100)
    assert closed["start_us"] == 0
    assert "distance" not in closed
    book.add([0], [1], [1], newest_us=160)
    assert [tally.start_us for tally in book.tallies] == [100]


def test_shifts_compare_consecutive_panes():
    book = PaneBook(100)
    book.add([0, 0, 100, 100], [1, 2, 1, 3], [2, 2, 2, 2], newest_us=199)
    _, second = book.close(200)
    assert (second["distance"], second["appeared"], second["vanished"]) == (0.5, 1, 1)


def test_keys_are_bounded_and_what_overflows_is_counted():
    book = PaneBook(100, max_keys=10)
    book.add(np.zeros(1000), np.arange(1000), np.ones(1000), newest_us=10)
    (tally,) = book.tallies
    assert (len(tally.keys), tally.overflow_rows, tally.rows) == (10, 990.0, 1000.0)


def test_rows_of_groups_that_the_backend_did_not_list_are_counted_and_paid_for():
    book = PaneBook(100)
    setting = GroupDrop(0.5, 100, (0,), (0.5,), ((7,),), ((0.1,),))
    book.add([0], [7], [50], newest_us=50, setting=setting, unlisted={0: 30.0, 100: 4.0})
    first, second = book.tallies
    assert (first.rows, first.overflow_rows, first.kept) == (80.0, 30.0, 20.0)
    assert (second.rows, second.kept) == (4.0, 4.0)


def report(groups, panes, kept, newest_us, kept_rows=None):
    keys = packed(np.array(groups) * PANES, panes)
    return KeptGroups(tuple(keys.tolist()), tuple(kept), sum(kept) if kept_rows is None else kept_rows, newest_us)


def test_kept_rows_stand_for_the_rows_there_were():
    book = PaneBook(100)
    setting = GroupDrop(0.5, 100, (0,), (1.0,), ((7 * PANES,),), ((0.1,),), new_keep_fraction=0.2)
    book.learn(report([7, 8, 7], [0, 0, 1], [5, 3, 2], newest_us=150), setting)
    first, second = book.tallies
    assert dict(zip(first.keys // PANES, first.seen, strict=True)) == pytest.approx({7: 50.0, 8: 3.0})
    assert first.kept == pytest.approx(8.0)
    assert second.seen == pytest.approx(np.array([10.0]))


def test_rows_of_groups_that_are_not_listed_are_rows_of_the_newest_pane():
    book = PaneBook(100)
    setting = GroupDrop(0.5, 100, (100,), (0.5,), ((),), ((),))
    book.learn(report([7], [0], [5], newest_us=150, kept_rows=25), setting)
    first, second = book.tallies
    assert (first.overflow_rows, second.overflow_rows) == (0.0, 40.0)
    assert second.kept == pytest.approx(20.0)


def test_panes_long_over_need_not_wait_for_the_watermark():
    book = PaneBook(100)
    book.learn(report([1], [0], [1], newest_us=50), None)
    book.learn(report([1], [5], [1], newest_us=550), None)
    assert book.oldest_open_us == 350
    assert [pane["start_us"] for pane in book.close(book.oldest_open_us)] == [0]


def test_while_everything_is_kept_a_sample_tells_the_groups_and_how_many_rows_it_missed():
    book = PaneBook(100)
    book.learn(report([1, 2, 3, 4], [0, 0, 0, 0], [50, 1, 1, 2], newest_us=50), GroupDrop())
    (pane,) = book.tallies
    assert (pane.keys // PANES).tolist() == [1, 2, 3, 4]
    assert pane.seen == pytest.approx(np.array([50, 1, 1, 2]) / IDLE_SAMPLE)
    assert pane.unseen_rows == pytest.approx(2 * (1 / IDLE_SAMPLE - 1))  # by Good and Turing, from those shown once
    assert pane.rows == pytest.approx(54 / IDLE_SAMPLE)


def test_small_groups_are_known_although_no_batch_shows_two_rows_of_them():
    book = PaneBook(100)
    setting = GroupDrop(0.5, 100, (0,), (0.5,), ((),), ((),))
    for number in range(4):
        book.learn(report(range(1, 31), [0] * 30, [1] * 30, newest_us=10 * (number + 1)), setting)
    (pane,) = book.tallies
    assert pane.seen == pytest.approx(np.full(30, 8.0))
    assert pane.unseen_rows == 0.0


def test_a_group_that_appears_in_the_middle_is_known_in_the_next_plan():
    book = PaneBook(100)
    setting = GroupDrop(0.5, 100, (0,), (1.0,), ((1 * PANES,),), ((0.1,),))
    book.learn(report([1], [0], [100], newest_us=40), setting)
    book.learn(report([1, 2], [0, 0], [10, 90], newest_us=50), setting)
    (pane,) = book.tallies
    assert dict(zip(pane.keys // PANES, pane.seen, strict=True)) == pytest.approx({1: 1100.0, 2: 90.0})
    assert pane.novel_rows / pane.recent_rows == pytest.approx(90 / 190)


def test_what_plans_keep_beyond_what_they_expect_is_noted():
    book = PaneBook(100)
    setting = GroupDrop(0.1, 100, (0,), (0.2,), ((),), ((),))
    for number in range(8):
        book.learn(report([1], [0], [200], newest_us=10 * (number + 1)), setting)
    assert book.tallies[0].overspent == 2.0  # the most that is believed


@pytest.mark.parametrize("rows", [30_000, 300_000])
def test_a_budget_holds_while_groups_are_found_out(rows):
    """A pane in three batches at 3 %, of which the first is a uniform sample: unknown groups are not all kept whole."""
    random = np.random.default_rng(1)
    policy = ConceptDrop(group="route", time="at", window=f"{PANE_S} seconds")
    size = 1.0 / (1.0 + np.arange(1000))
    book, setting, kept_rows = policy.groups.book("rows"), GroupDrop(new_keep_fraction=0.03), []
    for batch in range(6):
        group = random.choice(1000, rows, p=size / size.sum()) * PANES
        pane, newest_us = batch // 3, int((batch + 1) * PANE_S * 1e6 / 3) - 1
        share = keep_shares(setting, np.full(rows, pane * PANE_S * 1_000_000), group)
        kept = group[random.random(rows) < share]
        kept_rows.append(len(kept))
        found, counts = np.unique(kept, return_counts=True)
        keys = packed(found, np.full(len(found), pane))
        book.learn(KeptGroups(tuple(keys.tolist()), tuple(counts.tolist()), len(kept), newest_us), setting)
        seen = Stats(batch, 0.0, 1.0, {"rows": PointStats(rows, len(kept))})
        setting = policy.plan(seen, Budget(0.03, 0.03, 3600.0, "too many rows")).points["rows"]
    assert sum(kept_rows) < 1.25 * 0.03 * 6 * rows
    assert max(kept_rows) < 1.6 * 0.03 * rows
