from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from jettison.cli import app
from jettison.errors import InvalidInput, InvalidSetting
from jettison.pipeline.document import BoxFile, load, parse, require_runnable
from jettison.pipeline.policy_file import KINDS
from jettison.policies.network.network_tables import describe

DOCUMENT = {
    "latency": "3 seconds",
    "inputs": {"rides": {"rate": 100, "row_id": ["id"], "values": [[0, 100, 1.0]]}},
    "boxes": {
        "parse": {"reads": "rides", "kind": "map", "sql": "select * from rides", "cost": 4, "selectivity": 1},
        "expensive": {
            "reads": "parse",
            "sql": "select * from parse where value > 50",
            "cost": 1,
            "selectivity": 0.5,
            "passes": [[50, 100]],
        },
    },
    "outputs": {
        "archive": {"reads": "parse", "qos": {"loss_tolerance": [[100, 1], [20, 0.8], [0, 0]]}},
        "alarms": {"reads": "expensive", "qos": {"value": [[0, 70, 0.2], [70, 100, 1.0]]}},
    },
}


def test_a_file_becomes_a_network(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    pipeline = load(tmp_path / "p.json")
    assert list(pipeline.graph.boxes) == ["parse", "expensive"]
    assert pipeline.graph.is_split("parse")
    assert pipeline.latency == "3 seconds"


def test_options_of_a_source_stay_what_they_are() -> None:
    options = {"maxFilesPerTrigger": 1, "header": True, "share": 0.5, "startingOffsets": "earliest"}
    kept = parse(DOCUMENT | {"inputs": {"rides": {"options": options}}}).inputs["rides"].options
    assert {name: str(value) for name, value in kept.items()} == {name: str(value) for name, value in options.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boxs": {}}, "boxs for the pipeline. Hint: did you mean 'boxes'"),
        ({"boxes": {"parse": {"reads": "rides", "costs": 3}}}, "costs for boxes.parse. Hint: did you mean 'cost'"),
        (
            {"outputs": {"o": {"reads": "rides", "qos": {"loss_tolerance": [[100, 1], [50, 0.1], [0, 0]]}}}},
            "output 'o'",
        ),
        ({"outputs": {"o": {"qos": {}}}}, "`reads` must be given, got none for outputs.o. Hint: write reads: "),
        (
            {"boxes": {"both": {"reads": ["rides", "rides"], "sql": "select * from rides"}}},
            "join or union.*boxes.both",
        ),
        ({"inputs": [1]}, r"names with settings, got \[1\] for inputs"),
        ({"boxes": {"parse": None}}, "names with settings, got None for boxes.parse"),
        ({"boxes": {7: {"reads": "rides"}}}, "names that are texts, got `int` for boxes"),
        ({"boxes": {"parse": {"reads": "rides", "cost": "four"}}}, "a number, got 'four' for boxes.parse.cost. Hint: "),
        ({"boxes": {"parse": {"reads": "rides", "cost": -1}}}, "a number >= 0.0, got -1 for boxes.parse.cost"),
        ({"boxes": {"parse": {"reads": "rides", "kind": "filtre"}}}, "boxes.parse.kind. Hint: did you mean 'filter'"),
        ({"boxes": {"parse": {"reads": "rides", "passes": [[1, 2], [3]]}}}, r"got \[3\] for boxes.parse.passes.1"),
        ({"inputs": {"rides": {"row_id": ["id"], "rate": "fast"}}}, "'fast' for inputs.rides.rate"),
        ({"latency": True}, "a number or a text, got True for latency"),
        (
            {"outputs": {"o": {"reads": "rides", "qos": {"loss_tolerance": 5}}}},
            "got 5 for outputs.o.qos.loss_tolerance",
        ),
        ({"outputs": {"o": {"reads": "rides", "qos": {"wieght": 5}}}}, "outputs.o.qos. Hint: did you mean 'weight'"),
        (
            {"boxes": {"n": {"reads": "rides", "kind": "aggregate", "weighted": True}}},
            "weighted for boxes.n. Hint: leave it",
        ),
        ({"inputs": {"rides": {"id": ["id"]}}}, "id for inputs.rides. Hint: it is called `row_id` now"),
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


@pytest.mark.parametrize("name", ["p.yaml", "p.json"])
def test_half_a_character_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(DOCUMENT | {"latency": "\ud800"}))
    with pytest.raises(InvalidInput, match="surrogates not allowed"):
        load(tmp_path / name)


def test_aliases_are_welcome_where_they_repeat_a_setting(tmp_path: Path) -> None:
    text = """
    inputs: {rides: &source {rate: 3, row_id: [id]}, others: {<<: *source, rate: 5}}
    boxes: {both: {reads: [rides, others]}}
    outputs: {out: {reads: both}}
    """
    (tmp_path / "p.yaml").write_text(text)
    assert {name: one.rate for name, one in load(tmp_path / "p.yaml").graph.inputs.items()} == {"rides": 3, "others": 5}


def test_a_pipeline_may_be_written_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT, sort_keys=False))
    assert describe(load(path).graph) == describe(parse(DOCUMENT).graph)


def test_what_kafka_may_hand_over_is_shared_by_the_rates_of_its_inputs() -> None:
    """Together half the bound's worth of the peak, however many there are."""
    inputs = {"a": {"format": "kafka", "rate": 3}, "b": {"format": "kafka", "rate": 1}, "c": {"format": "rate"}}
    boxes = {"all": {"reads": ["a", "b", "c"]}}
    document = {"inputs": inputs, "boxes": boxes, "outputs": {"o": {"reads": "all"}}, "latency": "4 seconds"}
    assert parse(document).kafka_caps == {}
    assert parse(document | {"peak_rows_per_s": 1000}).kafka_caps == {"a": 1500, "b": 500}
    idle = {name: one | {"rate": 0} for name, one in inputs.items()}
    assert parse(document | {"peak_rows_per_s": 1000, "inputs": idle}).kafka_caps == {"a": 1000, "b": 1000}


def test_the_plan_command_shows(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(DOCUMENT))
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "p.json")])
    assert result.exit_code == 0, result.output
    assert "parse__expensive" in result.output
    assert "load saved" in result.output


def test_the_schema_is_for_editors() -> None:
    result = CliRunner().invoke(app, ["plan", "--schema"])
    assert result.exit_code == 0, result.output
    known = json.loads(result.output)["$defs"]
    assert set(known["BoxFile"]["properties"]) == set(BoxFile.__struct_fields__)
    assert known["BoxFile"]["properties"]["cost"]["anyOf"][0]["minimum"] == 0
    assert {name for name in known if name.endswith("File")} >= {kind.__name__ for kind in KINDS.values()}
    assert known["BoxFile"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "`checkpoint` must be given"),
        ({"checkpoint": " "}, "`checkpoint` must be given"),
        ({"checkpoint": "c"}, "`format` must be given, got none for inputs.rides.format. Hint: write format: kafka"),
    ],
)
def test_what_can_be_planned_and_not_run_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        require_runnable(parse(DOCUMENT | change))
