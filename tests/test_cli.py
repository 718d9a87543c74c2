"""The command line: refusals are one sentence and exit code 2, before Java or Spark is asked for anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jettison import __version__, cli, java
from jettison.bench.names import BENCHMARKS
from jettison.demo import defaults
from jettison.errors import Unsupported

COMMANDS = ("demo", "bench", "reproduce", "plan", "run", "top")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `jettison ARGUMENTS` as a process would, expect exit code 2, and return what it said."""

    def asked() -> None:
        raise AssertionError("Java was looked for before the arguments were checked")

    monkeypatch.setattr(java, "require_java", asked)

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["jettison", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize("seconds", ["12,42", "12,42,12,1", "12;42;12", "", "1,0,1", "1,-2,1", "1,nan,1", "1,inf,1"])
def test_phases_that_are_not_three_positive_numbers(refused: Callable[..., str], seconds: str) -> None:
    said = refused("demo", "--seconds", seconds)
    assert said == f"jettison: --seconds must be three positive numbers, got {seconds!r}. Hint: write 12,42,12.\n"


@pytest.mark.parametrize("latency", ["0", "-3", "nan", "inf", "soon", "3 fortnights"])
def test_a_bound_that_is_no_duration(refused: Callable[..., str], latency: str) -> None:
    said = refused("demo", "--latency", latency)
    assert "`--latency` must be a positive duration, got" in said
    assert "Hint: write '3 seconds', '250 ms' or 1.5." in said


@pytest.mark.parametrize(("typed", "bound_s"), [("3 seconds", 3.0), ("250 ms", 0.25), ("1.5", 1.5)])
def test_a_bound_may_be_written_as_its_hint_says(monkeypatch: pytest.MonkeyPatch, typed: str, bound_s: float) -> None:
    from jettison.demo import command

    told: dict[str, Any] = {}
    monkeypatch.setattr(java, "require_java", lambda: None)
    monkeypatch.setattr(command, "run_demo", lambda console, **how: told.update(how))
    assert CliRunner().invoke(cli.app, ["demo", "--latency", typed]).exit_code == 0
    assert told["bound_s"] == bound_s


@pytest.mark.parametrize("arguments", [("demo", "--json"), ("demo", "--picture"), ("bench", "--json")])
def test_a_file_in_a_folder_that_is_not_there(refused: Callable[..., str], tmp_path: Path, arguments: Any) -> None:
    said = refused(*arguments, str(tmp_path / "nowhere" / "out"))
    assert f"{arguments[1]} must name a file in a folder that exists" in said
    assert f"mkdir -p {tmp_path / 'nowhere'}" in said
    assert "Traceback" not in said


def test_a_picture_that_could_not_be_drawn(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "--picture must end in .png or .pdf or .svg" in refused("demo", "--picture", str(tmp_path / "x.bmp"))
    assert "--json must name a file, got the folder" in refused("demo", "--json", str(tmp_path))


def test_a_checkpoint_that_is_not_there(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "the folder of a query's checkpoint, got" in refused("top", str(tmp_path / "nowhere"))


def test_unknown_names_are_met_with_the_nearest_one(refused: Callable[..., str]) -> None:
    assert "did you mean 'idle-json'?" in refused("bench", "idle-jsn")
    assert "did you mean 'aurora'?" in refused("reproduce", "auroa")


def test_a_benchmark_without_repetitions(refused: Callable[..., str]) -> None:
    assert "--repetitions must be at least 1, got 0" in refused("bench", "controller", "--repetitions", "0")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_pipeline_file_that_is_not_there(refused: Callable[..., str], tmp_path: Path, command: str) -> None:
    path = str(tmp_path / "none.yaml")
    said = refused(command, path)
    assert "a pipeline file in YAML or JSON, got none that can be read (No such file or directory) for" in said
    assert said.count(path) == 1


PIPELINE = {
    "checkpoint": "out/checkpoint",
    "inputs": {"rides": {"format": "rate", "id": ["value"]}},
    "boxes": {"dear": {"reads": "rides", "sql": "select * from rides where value > 5"}},
    "outputs": {"alarms": {"reads": "dear", "path": "out/alarms"}},
}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latency": "soon"}, "`latency` must be a positive duration, got 'soon'"),
        ({"latency": -3}, "`latency` must be a positive duration, got -3"),
        ({"checkpoint": None}, "`checkpoint` must name a folder, got None for the pipeline"),
        ({"checkpoint": ""}, "`checkpoint` must name a folder, got '' for the pipeline"),
    ],
)
def test_settings_that_no_pipeline_can_have(
    refused: Callable[..., str], tmp_path: Path, command: str, change: dict[str, Any], message: str
) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE | change))
    assert message in refused(command, str(tmp_path / "p.json"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checkpoint": "nowhere://x/y"}, "nowhere"),
        ({"inputs": {"rides": {"id": ["value"]}}}, "`format` must name a streaming source, got none for input 'rides'"),
        ({"inputs": {"rides": {"format": "rate"}}}, "`id` must name the columns of an identity, got none for input"),
        ({"boxes": {"dear": {"reads": "rides", "sql": None}}}, "`sql` must say what the box does, got none for box"),
        ({"outputs": {"alarms": {"reads": "dear"}}}, "`path` must name a folder to write to, got none for output"),
    ],
)
def test_a_pipeline_that_can_be_planned_but_not_run(
    refused: Callable[..., str], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE | change))
    assert message in refused("run", str(tmp_path / "p.json"))
    assert CliRunner().invoke(cli.app, ["plan", str(tmp_path / "p.json")]).exit_code == 0


def test_a_pipeline_without_a_checkpoint_is_planned_but_not_run(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps({key: PIPELINE[key] for key in ("inputs", "boxes", "outputs")}))
    assert "`checkpoint` must name a folder, got none for the pipeline" in refused("run", str(tmp_path / "p.json"))
    assert CliRunner().invoke(cli.app, ["plan", str(tmp_path / "p.json")]).exit_code == 0


@pytest.mark.parametrize("seconds", ["-5", "0", "nan", "soon"])
def test_a_run_of_no_length(refused: Callable[..., str], tmp_path: Path, seconds: str) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE))
    said = refused("run", str(tmp_path / "p.json"), "--seconds", seconds)
    assert "`--seconds` must be a positive duration, got" in said


def test_looking_again_after_no_time_at_all(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "`--follow` must be a positive duration" in refused("top", str(tmp_path), "--follow", "0")


@pytest.mark.parametrize("arguments", [("bench", "--repetitions", "few"), ("bench", "--fast"), ("dance",)])
def test_what_the_command_line_itself_does_not_know(refused: Callable[..., str], arguments: Any) -> None:
    assert "Usage: " in refused(*arguments)


def test_a_missing_java_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def none() -> None:
        raise Unsupported("Jettison needs Java 17 or newer, found none on PATH.")

    monkeypatch.setattr(java, "require_java", none)
    monkeypatch.setattr(sys, "argv", ["jettison", "demo"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == "jettison: Jettison needs Java 17 or newer, found none on PATH.\n"


def test_an_error_that_nobody_raised_on_purpose_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_the_demo_is_told_what_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from jettison.demo import command

    told: dict[str, Any] = {}
    monkeypatch.setattr(java, "require_java", lambda: None)
    monkeypatch.setattr(command, "run_demo", lambda console, **how: told.update(how))
    where = ["--json", str(tmp_path / "a.json"), "--picture", str(tmp_path / "a.png")]
    assert CliRunner().invoke(cli.app, ["demo", "--latency", "4", "--seconds", "1, 2.5,3", *where]).exit_code == 0
    assert told == {
        "bound_s": 4.0,
        "seconds": [1.0, 2.5, 3.0],
        "json_path": tmp_path / "a.json",
        "picture_path": tmp_path / "a.png",
        "cold": False,
    }
    assert CliRunner().invoke(cli.app, ["demo", "--cold"]).exit_code == 0
    assert told["cold"]
    assert (told["bound_s"], tuple(told["seconds"])) == (defaults.BOUND_S, defaults.SECONDS)


def test_benchmarks_are_told_what_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    from jettison.bench import command

    told: dict[str, Any] = {}
    monkeypatch.setattr(command, "run_bench", lambda console, **how: told.update(how) or [])
    assert CliRunner().invoke(cli.app, ["bench", "sharing", "--repetitions", "3"]).exit_code == 0
    assert told == {"name": "sharing", "repetitions": 3, "json_path": None, "only": None}


@pytest.mark.parametrize(("required", "status"), [(False, 0), (True, 1)])
def test_a_bar_that_must_be_met_and_is_missed_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, required: bool, status: int
) -> None:
    from jettison.bench import command
    from jettison.bench.result import Result

    missed = Result("a", value=2.0, unit="s", at_most=1.0, required=required)
    monkeypatch.setattr(command, "run_bench", lambda console, **how: [missed])
    assert CliRunner().invoke(cli.app, ["bench", "harm", "--only", "files-3x"]).exit_code == status


def test_a_run_is_told_what_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from jettison.spark import pipeline

    told: dict[str, Any] = {}
    monkeypatch.setattr(java, "require_java", lambda: None)
    monkeypatch.setattr(pipeline, "run_pipeline", lambda given, **how: told.update(how))
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE))
    typed = ["run", str(tmp_path / "p.json"), "--seconds", "2 minutes", "--dry-run"]
    assert CliRunner().invoke(cli.app, typed).exit_code == 0
    assert told == {"master": "local[*]", "dry_run": True, "seconds": 120.0}


def test_help_names_every_command() -> None:
    said = CliRunner().invoke(cli.app, ["--help"])
    assert said.exit_code == 0
    assert [command for command in COMMANDS if command not in said.output] == []


def test_help_names_every_benchmark_and_how_long_it_takes() -> None:
    said = CliRunner().invoke(cli.app, ["bench", "--help"], env={"COLUMNS": "120"})
    assert said.exit_code == 0
    lines = [" ".join(line.split()) for line in said.output.splitlines()]
    for name, (length, what) in BENCHMARKS.items():
        assert f"{name} {length} {what}" in lines


def test_the_version_is_told() -> None:
    said = CliRunner().invoke(cli.app, ["--version"])
    assert (said.exit_code, said.output) == (0, f"jettison {__version__}\n")
