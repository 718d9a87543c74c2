"""The worked examples of the paper, and where its rule and Spark's windows part ways."""

from __future__ import annotations

import pytest

from jettison.errors import InvalidSetting
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_needs import Pipeline
from paper_rules import WinDrop, fan_out, pipeline


def test_pipeline_example() -> None:
    assert pipeline([WinDrop(3, 2), WinDrop(3, 3)]) == WinDrop(5, 3)


def test_fan_out_example() -> None:
    drop = fan_out([WinDrop(3, 2), WinDrop(3, 3)])
    assert (drop.size, drop.slide) == (7, 6)


def test_composition_is_the_same_by_either_order_of_the_rules() -> None:
    first, left, right = WinDrop(4, 1), WinDrop(3, 2), WinDrop(3, 3)
    fan_out_first = pipeline([first, fan_out([left, right])])
    pipelines_first = fan_out([pipeline([first, left]), pipeline([first, right])])
    assert (fan_out_first.size, fan_out_first.slide) == (10, 6)
    assert fan_out_first == pipelines_first


def test_batch_sizes_are_scaled_to_the_common_slide_and_the_least_counts() -> None:
    assert fan_out([WinDrop(3, 2, batch=9), WinDrop(3, 3, batch=4)]).batch == 2
    assert fan_out([WinDrop(3, 2, batch=2), WinDrop(3, 3, batch=4)]).batch == 0


def test_batch_of_a_pipeline_is_that_of_its_output() -> None:
    assert pipeline([WinDrop(3, 2, batch=7), WinDrop(3, 3, batch=4)]).batch == 4


def test_the_forward_rule_misses_rows_that_spark_needs() -> None:
    # Forward from the start 12, size 5: [12, 17). On Spark the answer [12, 15) needs the sums that end in (12, 15].
    assert pipeline([WinDrop(3, 2), WinDrop(3, 3)]).size == 5
    assert Pipeline((Grid(3, 2), Grid(3, 3))).need(4) == (10, 15)


def test_rules_need_an_aggregate() -> None:
    with pytest.raises(InvalidSetting):
        fan_out([])
    with pytest.raises(InvalidSetting):
        pipeline([])
