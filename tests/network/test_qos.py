from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.network import LatencyUtility, LossTolerance, ValueUtility
from jettison.network.semantic import ValueTable


def test_the_papers_graph_of_figure_6() -> None:
    graph = LossTolerance([(100, 1.0), (50, 0.7), (0, 0.0)])
    assert [piece.slope for piece in graph.pieces] == pytest.approx([0.7 / 0.5, 0.3 / 0.5])
    assert graph.at(50) == 0.7
    assert graph.at(25) == pytest.approx(0.35)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(100, 1), (50, 0.2), (0, 0)], r"concave.*\(50, 0.2\).*output 'pager'"),
        ([(100, 0.5), (50, 0.8), (0, 0)], r"never fall.*0.8 at 50 and 0.5 at 100.*output 'pager'"),
        ([(100, 1), (120, 1), (0, 0)], r"point 2 of the loss_tolerance graph of output 'pager'"),
        ([(100, 1), (0, -0.1)], r"utility must lie in \[0, 1\].*point 2 .*output 'pager'"),
        ([(100, 1), (20, 0.2)], r"0 % to 100 %.*output 'pager'"),
        ([(100, 1), (100, 0.9), (0, 0)], r"100 twice.*output 'pager'"),
        ([(100, 1)], r"two points.*output 'pager'"),
    ],
)
def test_a_bad_graph_is_refused_with_output_and_point(points: list[tuple[float, float]], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        LossTolerance(points, output="pager")


def test_latency_graphs_fall_and_are_concave() -> None:
    with pytest.raises(InvalidSetting, match="never rise"):
        LatencyUtility([(0, 0.5), (3, 1.0)])
    with pytest.raises(InvalidSetting, match="concave"):
        LatencyUtility([(0, 1.0), (1, 0.2), (9, 0.0)])
    graph = LatencyUtility([(0, 1.0), (2, 1.0), (6, 0.0)])
    assert graph.bound_s(1.0) == 2.0
    assert graph.bound_s(0.25) == 5.0


def test_value_intervals_do_not_overlap() -> None:
    with pytest.raises(InvalidSetting, match=r"interval 2 of the value graph of output 'o'"):
        ValueUtility([(0, 50, 0.2), (40, 100, 1.0)], output="o")
    assert ValueUtility([(0, 50, 0.2), (50, 100, 1.0)]).at(50) == 1.0
    assert ValueUtility([(0, 50, 0.2)]).at(70) == 0.0


def test_the_papers_table_1_and_figure_8() -> None:
    table = ValueTable.of(ValueUtility([(0, 50, 0.2), (51, 100, 1.0)]), [0.4, 0.6])
    assert [row.weighted for row in table.rows] == pytest.approx([0.08, 0.6])
    assert [round(row.normalised, 2) for row in table.rows] == [0.12, 0.88]
    points = table.loss_tolerance().points
    assert points[1] == (pytest.approx(60.0), pytest.approx(0.88, abs=0.005))
    assert table.predicate(0.2) == "value >= 25"
    assert table.predicate(0.7) == "value > 75"
    assert table.predicate(0.0) == "true"


def test_a_middle_interval_can_go_first() -> None:
    table = ValueTable.of(ValueUtility([(0, 10, 1.0), (10, 20, 0.1), (20, 30, 0.5)], column="v"), [0.3, 0.3, 0.4])
    assert table.predicate(0.15) == "(v < 10 or v >= 15)"
    assert table.predicate(0.5) == "(v < 10 or v >= 25)"


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.001, 1.0)), min_size=1, max_size=6),
    st.floats(0.0, 1.0),
)
def test_the_derived_graph_is_a_loss_tolerance_graph(rows: list[tuple[float, float]], drop: float) -> None:
    whole = sum(frequency for _, frequency in rows)
    value = ValueUtility([(10 * n, 10 * n + 10, utility) for n, (utility, _) in enumerate(rows)])
    table = ValueTable.of(value, [frequency / whole for _, frequency in rows])
    graph = table.loss_tolerance()  # raises unless it is concave and never falls
    assert graph.at(100) == 1.0
    # Dropping the ranges for a share drops exactly that share of evenly spread values.
    dropped = sum(
        row.frequency * max(0.0, min(end, row.high) - max(low, row.low)) / (row.high - row.low)
        for row in table.rows
        for low, end in table.dropped_ranges(drop)
    )
    assert dropped == pytest.approx(drop, abs=1e-6)
