"""Borrowed estimates beside the answers of windows: flagged, from windows that are over, and never instead of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from jettison import functions as jf
from jettison.errors import InvalidSetting

EXACT = None
FROM_HISTORY, FROM_NEIGHBOURS = "borrowed from history", "borrowed from neighbours"


def answers(start, end, evidence, **more):
    """A window's answers from (group, mean, kept, effective rows, rows)."""
    seen = [
        {"mean": mean, "variance": 4.0 if kept > 1 else None, "kept": kept, "effective_rows": worth, "rows": rows}
        for _, mean, kept, worth, rows in evidence
    ]
    window = [{"start": start, "end": end}] * len(seen)
    return pa.table({"window": window, "route": [one[0] for one in evidence], "fare": seen, **more})


def many(means, kept=60):
    return [(f"r{i}", mean, kept, float(kept), 600.0) for i, mean in enumerate(means)]


def estimates(table, group):
    return next(row for row in table.to_pylist() if row["route"] == group)["estimate"]


def borrower(**settings):
    return jf.Borrower(group="route", evidence="fare", **settings)


LEVELS = np.linspace(10.0, 60.0, 30)


def test_a_group_without_rows_borrows_from_its_earlier_windows_and_says_so():
    ours = borrower()
    ours.estimates(answers(0, 60, many(LEVELS)))
    later = many(LEVELS * 1.01)
    later[7] = ("r7", None, 0, EXACT, 600.0)
    made = ours.estimates(answers(60, 120, later))
    found = estimates(made, "r7")
    assert found["value"] == pytest.approx(LEVELS[7], rel=0.05)
    assert found["lower"] < LEVELS[7] < found["upper"]
    assert (found["kept"], found["status"]) == (0, FROM_HISTORY)
    mixed = estimates(made, "r8")
    assert LEVELS[8] < mixed["value"] < LEVELS[8] * 1.01
    assert (mixed["kept"], mixed["status"]) == (60, FROM_HISTORY)


def test_windows_that_overlap_are_not_borrowed_from():
    ours = borrower()
    ours.estimates(answers(0, 60, many(LEVELS)))
    later = many(LEVELS)
    later[7] = ("r7", None, 0, EXACT, 600.0)
    assert estimates(ours.estimates(answers(30, 90, later)), "r7")["status"] == FROM_NEIGHBOURS
    assert estimates(ours.estimates(answers(60, 120, later)), "r7")["status"] == FROM_HISTORY


def test_a_guess_is_not_remembered_as_if_it_were_known():
    ours = borrower()
    first = many(LEVELS)
    first[7] = ("r7", None, 0, EXACT, 600.0)
    assert estimates(ours.estimates(answers(0, 60, first)), "r7")["status"] == FROM_NEIGHBOURS
    assert estimates(ours.estimates(answers(60, 120, first)), "r7")["status"] == FROM_NEIGHBOURS


def test_a_group_that_seems_whole_keeps_its_value_and_is_not_called_exact():
    seen = [*many(LEVELS), ("whole", 17.25, 3, EXACT, 3.0)]
    found = estimates(borrower().estimates(answers(0, 60, seen)), "whole")
    assert found == {"value": 17.25, "lower": None, "upper": None, "kept": 3, "status": "unconfirmed"}


def test_where_nothing_is_known_the_answer_says_so():
    found = estimates(borrower().estimates(answers(0, 60, [("r0", None, 0, EXACT, 9.0)])), "r0")
    assert found == {"value": None, "lower": None, "upper": None, "kept": 0, "status": "unknown"}


def test_exact_counts_tell_that_rows_were_dropped_where_weights_do_not():
    seen = [*many(LEVELS), ("thin", 17.25, 3, EXACT, 300.0)]
    found = estimates(borrower().estimates(answers(0, 60, seen)), "thin")
    assert found["lower"] < 17.25 < found["upper"]
    assert found["value"] != 17.25
    assert found["status"] in ("bounded", FROM_NEIGHBOURS)


def test_neighbours_are_those_of_the_same_neighbourhood():
    levels = np.where(np.arange(40) % 2 == 0, 10.0, 80.0) + np.linspace(0, 1, 40)
    seen = [*many(levels), ("new", None, 0, EXACT, 50.0)]
    places = [*("cheap" if i % 2 == 0 else "dear" for i in range(40)), "dear"]
    made = borrower(neighbourhood="zone").estimates(answers(0, 60, seen, zone=places))
    assert estimates(made, "new")["value"] == pytest.approx(80.5, abs=1.0)


def test_one_table_of_all_windows_gives_what_windows_one_by_one_give():
    tables = [answers(start, start + 60, many(LEVELS + start / 60)) for start in (0, 60, 120)]
    one_by_one = borrower()
    expected = pa.concat_tables([one_by_one.estimates(table) for table in tables])
    assert borrower().estimates(pa.concat_tables(tables[::-1])).equals(expected)


def test_what_is_remembered_is_bounded():
    ours = borrower(max_groups=5)
    ours.estimates(answers(0, 60, many(LEVELS)))
    empty = [(f"r{i}", None, 0, EXACT, 600.0) if i in (2, 29) else one for i, one in enumerate(many(LEVELS))]
    made = ours.estimates(answers(60, 120, empty))
    assert [estimates(made, group)["status"] for group in ("r2", "r29")] == [FROM_NEIGHBOURS, FROM_HISTORY]


@pytest.mark.parametrize(
    ("changes", "complaint"), [({"group": "line"}, "line"), ({"evidence": "route"}, "jf.evidence")]
)
def test_answers_without_what_is_needed_are_refused(changes, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        jf.Borrower(**({"group": "route", "evidence": "fare"} | changes)).estimates(answers(0, 60, many(LEVELS)))
