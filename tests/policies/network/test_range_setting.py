from __future__ import annotations

import pytest

from jettison.core.plan import DropPlan
from jettison.errors import InvalidSetting
from jettison.policies.network.range_setting import MOST_RANGES, RangeDrop, few_ranges


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
