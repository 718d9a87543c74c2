from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.lab.reproduce.window.model import Query, kept_tuples, required_share, required_windows, straight_line


def test_the_papers_estimates_at_a_quarter_too_much_load() -> None:
    # Delays of 5 ms before and after. The aggregate's own cost is not given; 0.25 ms for slide 1 gives the paper's 0.39.
    tumbling = Query(5.0, 0.0, 5.0, size=100, slide=100)
    sliding = Query(5.0, 0.25, 5.0, size=100, slide=1)
    assert required_windows(tumbling, 0.25) == pytest.approx(0.2, abs=0.005)
    assert required_windows(sliding, 0.25) == pytest.approx(0.39, abs=0.005)


@given(st.floats(0.0, 1.0), st.integers(2, 200))
def test_tumbling_windows_keep_tuples_in_proportion(share: float, size: int) -> None:
    assert kept_tuples(Query(1, 0, 1, size, size), share) == pytest.approx(1 - share)


def test_without_room_for_early_drops_every_tuple_stays() -> None:
    assert kept_tuples(Query(1, 0, 1, size=100, slide=1), 0.9) == 1.0


def test_windows_dropped_at_the_input_save_before_and_after_the_aggregate_alike() -> None:
    query = Query(1.0, 0.0, 10.0, size=10, slide=10)
    assert required_windows(query, 1.01) == pytest.approx(1 - 1 / 2.01)


@given(st.floats(0.0, 3.0))
def test_the_required_share_brings_the_load_just_down(excess: float) -> None:
    def load(share: float) -> float:
        return 5.0 - 3.0 * share

    share = required_share(load, excess)
    if share < 1.0:
        assert load(share) * (1 + excess) == pytest.approx(5.0)


def test_measured_points_are_joined_by_lines() -> None:
    load = straight_line({0.0: 10.0, 0.5: 6.0, 0.9: 5.0})
    assert [load(share) for share in (0.0, 0.25, 0.5, 0.7, 0.9)] == pytest.approx([10.0, 8.0, 6.0, 5.5, 5.0])
    with pytest.raises(ValueError, match="two measured points"):
        straight_line({0.0: 1.0})
