from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from jettison.cli import app
from jettison.errors import InvalidInput, InvalidSetting
from jettison.network.document import load, parse
from jettison.network.picture import describe

DOCUMENT = {
    "latency": "3 seconds",
    "inputs": {"rides": {"rate": 100, "id": ["id"], "values": [[0, 100, 1.0]]}},
    "boxes": {
        "parse": {"reads": "rides", "kind": "map", "sql": "select * from rides", "cost": 4},
        "dear": {
            "reads": "parse",
            "sql": "select * from parse where value > 50",
            "selectivity": 0.5,
            "passes": [[50, 100]],
        },
    },
    "outputs": {
        "archive": {"reads": "parse", "qos": {"loss_tolerance": [[100, 1], [20, 0.8], [0, 0]]}},
        "alarms": {"reads": "dear", "qos": {"value": [[0, 70, 0.2], [70, 100, 1.0]]}},
    },
}


def test_a_file_becomes_a_network(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    pipeline = load(tmp_path / "p.json")
    assert list(pipeline.graph.boxes) == ["parse", "dear"]
    assert pipeline.graph.is_split("parse")
    assert pipeline.latency == "3 seconds"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boxs": {}}, "boxs for the pipeline"),
        ({"boxes": {"parse": {"reads": "rides", "costs": 3}}}, "costs for box 'parse'"),
        (
            {"outputs": {"o": {"reads": "rides", "qos": {"loss_tolerance": [[100, 1], [50, 0.1], [0, 0]]}}}},
            "output 'o'",
        ),
        ({"outputs": {"o": {"qos": {}}}}, "`reads`"),
        ({"boxes": {"both": {"reads": ["rides", "rides"], "sql": "select * from rides"}}}, "join or union.*box 'both'"),
        ({"inputs": [1]}, "map names to settings"),
        ({"boxes": {"parse": {"reads": "rides", "cost": "four"}}}, "'four' for box 'parse'"),
        ({"inputs": {"rides": {"id": ["id"], "rate": "fast"}}}, "'fast' for input 'rides'"),
        ({"outputs": {"o": {"reads": "rides", "qos": {"loss_tolerance": 5}}}}, "numbers.*for output 'o'"),
        (
            {
                "boxes": {
                    "n": {"reads": "rides", "kind": "aggregate", "weighted": True, "sql": "select count(*) from rides"}
                }
            },
            "uses `jt_weight`.*box 'n'",
        ),
    ],
)
def test_mistakes_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        parse(DOCUMENT | change)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing.yaml", None, "No such file"),
        ("broken.yaml", "inputs: [unclosed", "expected ',' or ']'"),
        ("broken.json", "{", "Expecting property name"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=message) as caught:
        load(tmp_path / name)
    assert name in str(caught.value)


def bomb(kind: str) -> str:
    """Some hundred bytes that stand for more than a machine holds."""
    if kind == "lists":
        levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
        return "\n".join(["a0: &a0 [x]", *levels])
    if kind == "merged":
        levels = [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 12)]
        return "\n".join(["a0: &a0 {x: 1}", *levels])
    if kind == "as a section":
        return bomb("lists") + "\ninputs: *a11\n"
    return {"itself": "inputs: &a {rides: *a}", "long": "# " + "x" * 300_000}[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("lists", "aliases make larger than 100,000 values"),
        ("merged", "aliases make larger than 100,000 values"),
        ("as a section", "aliases make larger than 100,000 values"),
        ("itself", "aliases make larger than 100,000 values"),
        ("long", "300,002 bytes where at most 262,144"),
    ],
)
def test_a_file_that_stands_for_more_than_it_holds_is_refused_before_it_is_built(
    tmp_path: Path, kind: str, message: str
) -> None:
    (tmp_path / "p.yaml").write_text(bomb(kind))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=message):
        load(tmp_path / "p.yaml")
    assert tracemalloc.get_traced_memory()[1] < 50e6  # it took gigabytes
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["p.yaml", "p.json"])
def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("[" * 20_000)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        load(tmp_path / name)


def test_aliases_are_welcome_where_they_repeat_a_setting(tmp_path: Path) -> None:
    text = """
    inputs: {rides: &source {rate: 3, id: [id]}, others: {<<: *source, rate: 5}}
    boxes: {both: {reads: [rides, others]}}
    outputs: {out: {reads: both}}
    """
    (tmp_path / "p.yaml").write_text(text)
    assert {name: one.rate for name, one in load(tmp_path / "p.yaml").graph.inputs.items()} == {"rides": 3, "others": 5}


def test_a_pipeline_may_be_written_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT, sort_keys=False))
    assert describe(load(path).graph) == describe(parse(DOCUMENT).graph)


def test_the_plan_command_shows_and_draws(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    picture = tmp_path / "network.svg"
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "p.json"), "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert "parse__dear" in result.output
    assert "load saved" in result.output
    assert picture.exists()
