from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import InvalidSetting
from jettison.policies.network import Box, Input, LossTolerance, Output, QoS, QueryGraph, ValueUtility
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel
from jettison.policies.network.evaluate import drop_plan
from jettison.policies.network.optimum import frontier
from jettison.policies.network.range_setting import RangeDrop


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
        ("x", r"pairs of percentage delivered and utility, got 'x' .*output 'pager'"),
    ],
)
def test_a_bad_graph_is_refused_with_output_and_point(points: list[tuple[float, float]], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        LossTolerance(points, output="pager")


def test_a_graph_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"`loss_tolerance` must be a LossTolerance, got \[\(100, 1\)\]"):
        QoS(loss_tolerance=[(100, 1)])


def test_value_intervals_do_not_overlap() -> None:
    with pytest.raises(InvalidSetting, match=r"interval 2 of the value graph of output 'o'"):
        ValueUtility([(0, 50, 0.2), (40, 100, 1.0)], output="o")
    assert ValueUtility([(0, 50, 0.2), (50, 100, 1.0)]).at(50) == 1.0
    assert ValueUtility([(0, 50, 0.2)]).at(70) == 0.0


def only_output(value: ValueUtility, frequencies: list[float], *, integral: bool = True) -> DropModel:
    """One input, whose values are as frequent as said in each interval, one box and one output."""
    spread = tuple((low, high, share) for (low, high, _), share in zip(value.intervals, frequencies, strict=True))
    boxes, outputs = [Box("b", ("i",))], [Output("o", "b", QoS(value=value))]
    return drop_model(QueryGraph([Input("i", values=spread)], boxes, outputs, integral_values=integral), semantic=True)


def dropped(model: DropModel, share: float) -> tuple[tuple[float, float], ...]:
    setting = drop_plan(model, frontier(model, tolerance=0.0).at((1.0 - share) * model.full_load)).points["i"]
    assert isinstance(setting, RangeDrop)
    return setting.drop


def test_the_papers_table_1_and_figure_8() -> None:
    model = only_output(ValueUtility([(0, 50, 0.2), (51, 100, 1.0)]), [0.4, 0.6])
    assert model.loss_tolerance["o"].points[1] == (pytest.approx(60.0), pytest.approx(0.88, abs=0.005))
    assert dropped(model, 0.2) == ((0.0, pytest.approx(25.0)),)  # value >= 25
    assert dropped(model, 0.7) == ((0.0, pytest.approx(75.5)),)  # value > 75
    assert dropped(model, 0.0) == ()


def test_a_middle_interval_can_go_first() -> None:
    value = ValueUtility([(0, 10, 1.0), (10, 20, 0.1), (20, 30, 0.5)])
    model = only_output(value, [0.3, 0.3, 0.4], integral=False)
    assert dropped(model, 0.15) == ((10.0, pytest.approx(15.0)),)
    assert dropped(model, 0.5) == ((10.0, pytest.approx(25.0)),)


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.001, 1.0)), min_size=1, max_size=6),
    st.floats(0.0, 1.0),
)
def test_the_derived_graph_is_a_loss_tolerance_graph(rows: list[tuple[float, float]], share: float) -> None:
    whole = sum(frequency for _, frequency in rows)
    value = ValueUtility([(10 * n, 10 * n + 10, utility) for n, (utility, _) in enumerate(rows)])
    # Raises unless it is concave and never falls.
    graph = only_output(value, [frequency / whole for _, frequency in rows], integral=False).loss_tolerance["o"]
    assert graph.at(100) == 1.0
    least = min(utility for utility, _ in rows)
    mean = sum(utility * frequency for utility, frequency in rows) / whole
    assert graph.at(100 * share) >= share - 1e-9  # values that are worth less go first
    assert mean == 0.0 or graph.pieces[-1].slope == pytest.approx(least / mean, abs=1e-6)
