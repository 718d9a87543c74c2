from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import DropPlan
from jettison.errors import InvalidSetting
from jettison.policies.network.range_setting import MOST_RANGES, Part, RangeDrop, few_ranges


def test_it_travels_as_text() -> None:
    plan = DropPlan(3, {"in": RangeDrop("value", ((0.0, 25.0), (51.0, 75.5)), keep_fraction=0.4)})
    assert DropPlan.from_json(plan.to_json()) == plan
    assert not plan.keeps_everything
    assert RangeDrop("value").keeps_everything


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ([(5, 5)], "low < end"),
        ([(0, 10), (9, 20)], "not overlap"),
        ([(20, 30), (0, 10)], "ascend"),
        ([(0, float("inf"))], "finite"),
        ([(2 * n, 2 * n + 1) for n in range(MOST_RANGES + 1)], "at most"),
    ],
)
def test_ranges_are_checked(drop: list[tuple[float, float]], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        RangeDrop("value", tuple(drop))


def test_too_many_ranges_are_joined_where_fewest_rows_lie_between_and_drop_never_less() -> None:
    dropped = [(10.0 * n, 10.0 * n + 5, 0.01) for n in range(12)]
    kept = [(10.0 * n + 5, 10.0 * n + 10, 0.01 * (n + 1)) for n in range(12)]
    chosen = few_ranges(dropped, kept)
    assert len(chosen) == MOST_RANGES
    assert chosen[0] == (0.0, 45.0, pytest.approx(5 * 0.01 + sum(0.01 * (n + 1) for n in range(4))))
    assert chosen[1:] == dropped[5:]


def joined_one_by_one(dropped: list[Part], kept: list[Part]) -> list[Part]:
    """The rule as it is said: while there are too many, the gap with the fewest rows goes too."""
    chosen = sorted(dropped)
    while touching := [n for n in range(1, len(chosen)) if chosen[n][0] <= chosen[n - 1][1]]:
        before, after = chosen[touching[0] - 1 : touching[0] + 1]
        chosen[touching[0] - 1 : touching[0] + 1] = [(before[0], after[1], before[2] + after[2])]
    while len(chosen) > MOST_RANGES:
        gaps = [
            sum(share for low, end, share in kept if before[1] <= low and end <= after[0])
            for before, after in itertools.pairwise(chosen)
        ]
        first = gaps.index(min(gaps))
        before, after = chosen[first : first + 2]
        chosen[first : first + 2] = [(before[0], after[1], before[2] + gaps[first] + after[2])]
    return chosen


@given(st.lists(st.tuples(st.integers(1, 2), st.booleans(), st.integers(0, 3)), max_size=60))
def test_which_ranges_are_joined_follows_from_the_rows_between_them(pieces: list[tuple[int, bool, int]]) -> None:
    ends = list(itertools.accumulate((length for length, _, _ in pieces), initial=0))
    parts = [(float(low), float(low + length), rows / 4) for low, (length, _, rows) in zip(ends, pieces, strict=False)]
    dropped = [part for part, (_, is_dropped, _) in zip(parts, pieces, strict=True) if is_dropped]
    kept = [part for part, (_, is_dropped, _) in zip(parts, pieces, strict=True) if not is_dropped]
    assert few_ranges(dropped, kept) == joined_one_by_one(dropped, kept)


def test_what_is_kept_is_looked_at_once_however_many_ranges_there_are() -> None:
    class Counting(list[Part]):
        looks = 0

        def __iter__(self):
            self.looks += 1
            return super().__iter__()

    dropped = [(2.0 * n, 2.0 * n + 1, 0.001) for n in range(100)]
    kept = Counting((2.0 * n + 1, 2.0 * n + 2, 0.001) for n in range(100))
    assert len(few_ranges(dropped, kept)) == MOST_RANGES
    assert kept.looks == 1
