"""What `jettison plan` shows: sources, drop points, policy and answers, and figures only where they were measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jettison.cli import app
from jettison.pipeline import costs
from jettison.pipeline.document import parse
from jettison.pipeline.plan_text import told

SINGLE: dict[str, Any] = {
    "inputs": {"rides": {"format": "kafka", "row_id": ["partition", "offset"], "options": {"subscribe": "taxis"}}},
    "boxes": {
        "fares": {"reads": "rides", "window": {"time": "5 seconds"}, "answers": {"fare": "avg(fare)"}},
        "seen": {"reads": "rides", "sql": "select zone, count(*) as n from rides group by zone"},
    },
    "outputs": {
        "answers": {"reads": "fares", "path": "out/answers"},
        "counts": {"reads": "seen", "format": "kafka", "options": {"topic": "counts", "kafka.password": "hunter2"}},
    },
}
NETWORK: dict[str, Any] = {
    "inputs": {"rides": {"format": "rate", "row_id": "value"}},
    "boxes": {
        "parse": {"reads": "rides", "sql": "select * from rides"},
        "high": {"reads": "parse", "sql": "select * from parse where value > 5"},
    },
    "outputs": {
        "all": {"reads": "parse", "path": "out/all", "qos": {}},
        "alarms": {"reads": "high", "path": "out/alarms", "qos": {"weight": 2}},
    },
}


def test_a_plan_names_drop_points_policy_and_what_answers_are_worth() -> None:
    said = told(parse(SINGLE))
    assert "Policy: uniform. Rows are dropped at random" in said
    assert "Rows may be dropped at: rides." in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "rides kafka taxis partition, offset" in lines
    assert "fares aggregate rides fare: avg(fare) bounds of 95%" in lines
    assert "seen aggregate rides of the kept rows alone: its SQL does not use `jt_weight`" in lines
    assert "counts seen kafka counts" in lines
    assert "hunter2" not in said
    assert "exact, of the windows that are kept" in told(parse(SINGLE | {"policy": "window"}))


def test_a_network_without_costs_has_no_road_map_and_says_how_to_measure_them() -> None:
    said = told(parse(NETWORK))
    assert "Rows may be dropped at: rides, parse__high, parse__all." in said
    assert "What the boxes cost is not known (parse, high)" in said
    assert "--calibrate" in said
    assert "load saved" not in said


def test_a_plan_says_whether_errors_are_foreseen() -> None:
    assert "the bounds of 'fares' are on record; `jettison run --dry-run` foresees them." in told(parse(SINGLE))
    twice = SINGLE["boxes"] | {"more": SINGLE["boxes"]["fares"]}
    outputs = SINGLE["outputs"] | {"also": {"reads": "more", "format": "noop"}}
    for document, why in (
        (NETWORK, "a network"),
        (SINGLE | {"boxes": twice, "outputs": outputs}, "several boxes with `answers`"),
        (
            SINGLE | {"inputs": SINGLE["inputs"] | {"b": {}}, "outputs": outputs | {"also": {"reads": "b"}}},
            "several inputs",
        ),
        (
            SINGLE | {"boxes": {"seen": SINGLE["boxes"]["seen"]}, "outputs": {"out": {"reads": "seen"}}},
            "no box with `answers`",
        ),
    ):
        assert f"not foreseen by a dry run, of a pipeline with {why}." in told(parse(document))
    again = SINGLE["outputs"] | {"again": {"reads": "fares", "format": "noop"}}
    assert "foresees them." in told(parse(SINGLE | {"outputs": again})), "outputs of the same rows are one reader"
    boxes = SINGLE["boxes"] | {"shown": {"reads": "fares", "sql": "select * from fares"}}
    more = SINGLE["outputs"] | {"more": {"reads": "shown", "format": "noop"}}
    both = told(parse(SINGLE | {"boxes": boxes, "outputs": more}))
    assert "not foreseen by a dry run, of a pipeline with several readers of its answers." in both
    assert "a dry run foresees how many windows would be missing" in told(parse(SINGLE | {"policy": "window"}))


def test_a_capacity_follows_from_what_boxes_were_measured_to_cost() -> None:
    pipeline = parse(SINGLE)
    said = told(pipeline, costs.measured(pipeline, {"fares": (3.0, 0.1, 1000), "seen": (2.0, 0.1, 1000)}))
    assert "Together 5 us for each row of the inputs: `capacity_rows_per_s: 200000` at most" in said
    free = told(pipeline, costs.measured(pipeline, {"fares": (0.0, 0.1, 1000), "seen": (0.0, 0.1, 1000)}))
    assert "Too little to be measured" in free
    assert "capacity" not in told(pipeline, costs.measured(pipeline, {"fares": (3.0, 0.1, 1000)}))


def measured(pipeline: Any) -> costs.Costs:
    return costs.measured(pipeline, {"parse": (0.5, 1.0, 100), "high": (2.0, 0.4, 100)})


def test_measured_costs_are_kept_beside_the_checkpoint_until_a_box_changes(tmp_path: Path) -> None:
    pipeline = parse(NETWORK | {"checkpoint": str(tmp_path)})
    costs.store(pipeline, measured(pipeline))
    boxes = costs.known(pipeline).graph.boxes
    assert {name: (box.cost, box.selectivity) for name, box in boxes.items()} == {
        "parse": (0.5, 1.0),
        "high": (2.0, 0.4),
    }
    assert "load saved" in told(costs.known(pipeline))
    changed = NETWORK["boxes"] | {"high": {"reads": "parse", "sql": "select * from parse where value > 6"}}
    assert costs.known(parse(NETWORK | {"checkpoint": str(tmp_path), "boxes": changed})).unmeasured == ["parse", "high"]
    (tmp_path / "jettison" / "costs.json").write_text("{")
    assert costs.known(pipeline).unmeasured == ["parse", "high"]


def test_stated_costs_are_not_mixed_with_measured_ones(tmp_path: Path) -> None:
    """What a person states is in any unit, what is measured in microseconds."""
    stated = {name: box | {"cost": 7.0} for name, box in NETWORK["boxes"].items()}
    half = parse(NETWORK | {"boxes": NETWORK["boxes"] | {"parse": stated["parse"]}})
    assert {box.cost for box in costs.with_costs(half, measured(half)).boxes.values()} == {0.5, 2.0}
    whole = parse(NETWORK | {"boxes": {name: box | {"selectivity": 1.0} for name, box in stated.items()}})
    assert costs.with_costs(whole, measured(whole)) == whole


@pytest.mark.parametrize("document", [SINGLE, NETWORK])
def test_the_command_shows_it(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "p.json").write_text(json.dumps(document))
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "p.json")])
    assert (done.exit_code, done.output) == (0, told(parse(document)) + "\n")
