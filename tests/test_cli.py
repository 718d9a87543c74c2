"""The command line: refusals are one sentence and exit code 2, before Java or Spark is asked for anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jettison import __version__, cli, java
from jettison.errors import Unsupported
from jettison.lab.experiments import BENCHMARKS, PAPERS

NONE_GIVEN = {"seeds": None, "rivals": None, "seconds": None, "minutes": None, "resume": False}
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


@pytest.mark.parametrize("loads", ["3", "1,2", "0.5,ten,0.5", "0.5,0,0.5"])
def test_loads_that_are_not_three_positive_numbers(refused: Callable[..., str], loads: str) -> None:
    said = refused("demo", "--loads", loads)
    assert said == f"jettison: --loads must be three positive numbers, got {loads!r}. Hint: write 0.5,3,0.5.\n"


@pytest.mark.parametrize("latency", ["0", "-3", "nan", "inf", "soon", "3 fortnights"])
def test_a_bound_that_is_no_duration(refused: Callable[..., str], latency: str) -> None:
    said = refused("demo", "--latency", latency)
    assert "`--latency` must be a positive duration, got" in said
    assert "Hint: write '3 seconds', '250 ms' or 1.5." in said


@pytest.mark.parametrize(("typed", "bound_s"), [("3 seconds", 3.0), ("250 ms", 0.25), ("1.5", 1.5)])
def test_a_bound_may_be_written_as_its_hint_says(monkeypatch: pytest.MonkeyPatch, typed: str, bound_s: float) -> None:
    from jettison.lab.demo import command

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


@pytest.mark.parametrize("arguments", [("demo", "--json"), ("bench", "replay", "--json")])
def test_a_file_that_cannot_be_written(refused: Callable[..., str], tmp_path: Path, arguments: Any) -> None:
    (tmp_path / "out.json").symlink_to(tmp_path / "nowhere" / "out.json")
    said = refused(*arguments, str(tmp_path / "out.json"))
    assert (
        f"--json must name a file that can be written, got {tmp_path / 'out.json'} (No such file or directory)" in said
    )


def test_asking_whether_a_file_can_be_written_leaves_none(refused: Callable[..., str], tmp_path: Path) -> None:
    refused("bench", "coffee", "--json", str(tmp_path / "out.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_could_not_be_drawn(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "--picture must end in .png or .pdf or .svg" in refused("demo", "--picture", str(tmp_path / "x.bmp"))
    assert "--json must name a file, got the folder" in refused("demo", "--json", str(tmp_path))


def test_a_checkpoint_that_is_not_there(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "`CHECKPOINT` must be the folder of a query's checkpoint, got" in refused("top", str(tmp_path / "nowhere"))


@pytest.mark.parametrize("arguments", [["report", "--html", "page.html"], ["audit", "--answers", "fares"]])
def test_a_folder_that_never_held_a_query_is_refused_before_anything_starts(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jettison.java.require_java", lambda: pytest.fail("Java comes later"))
    assert "must be that of a query that has run under Jettison" in refused(*arguments, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_unknown_names_are_met_with_the_nearest_one(refused: Callable[..., str]) -> None:
    assert "did you mean 'controller'?" in refused("bench", "controler")
    assert "did you mean 'aurora'?" in refused("reproduce", "auroa")


@pytest.mark.parametrize("seeds", ["0", "few", "5:5", "-3", "-3:4", "1:2:3", ""])
def test_seeds_that_are_none(refused: Callable[..., str], seeds: str) -> None:
    assert "--seeds must be a number, or two with a colon" in refused("bench", "faults", f"--seeds={seeds}")


@pytest.mark.parametrize(
    ("arguments", "takes"),
    [
        (("harm", "--seeds", "3"), "faults"),
        (("controller", "--rivals", "plain"), "prove"),
        (("faults", "--seconds", "3"), "prove"),
        (("--all", "--rivals", "plain"), "prove"),
        (("cost", "--minutes", "3"), "prove"),
        (("cost", "--resume"), "prove"),
    ],
)
def test_an_option_that_a_benchmark_does_not_take_is_refused(
    refused: Callable[..., str], arguments: tuple[str, ...], takes: str
) -> None:
    assert f"{arguments[1]} needs the benchmark {takes}, got" in refused("bench", *arguments)


def test_a_plan_without_spark_takes_no_master(refused: Callable[..., str]) -> None:
    assert "--master needs --calibrate" in refused("plan", "p.yaml", "--master", "local[2]")


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
    "inputs": {"rides": {"format": "rate", "row_id": ["value"]}},
    "boxes": {"dear": {"reads": "rides", "sql": "select * from rides where value > 5"}},
    "outputs": {"alarms": {"reads": "dear", "path": "out/alarms"}},
}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latency": "soon"}, "`latency` must be a positive duration, got 'soon'"),
        ({"latency": -3}, "`latency` must be a positive duration, got -3"),
        ({"checkpoint": None}, "it must be a text, got None for checkpoint. Hint: write checkpoint: a folder"),
        ({"boxes": {"dear": {"reads": "rides", "sql": 3}}}, "it must be a text, got 3 for boxes.dear.sql"),
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
        (
            {"inputs": {"rides": {"row_id": ["value"]}}},
            "`format` must be given, got none for inputs.rides.format. Hint: write format: kafka",
        ),
        (
            {"inputs": {"rides": {"format": "rate"}}},
            "`row_id` must be given, got none for inputs.rides.row_id. Hint: write row_id: [partition, offset]",
        ),
        ({"boxes": {"dear": {"reads": "rides"}}}, "`sql` must be given, got none for boxes.dear.sql"),
        ({"outputs": {"alarms": {"reads": "dear"}}}, "`path` must be given, got none for outputs.alarms.path"),
        ({"checkpoint": ""}, "`checkpoint` must be given, got none for checkpoint"),
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
    assert "`checkpoint` must be given, got none for checkpoint" in refused("run", str(tmp_path / "p.json"))
    assert CliRunner().invoke(cli.app, ["plan", str(tmp_path / "p.json")]).exit_code == 0


@pytest.mark.parametrize("seconds", ["-5", "0", "nan", "soon"])
def test_a_run_of_no_length(refused: Callable[..., str], tmp_path: Path, seconds: str) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE))
    said = refused("run", str(tmp_path / "p.json"), "--seconds", seconds)
    assert "`--seconds` must be a positive duration, got" in said


@pytest.mark.parametrize("rows", ["0", "-5"])
def test_settling_no_rows_a_second(refused: Callable[..., str], tmp_path: Path, rows: str) -> None:
    said = refused("reconcile", str(tmp_path), "--to", str(tmp_path / "to"), "--rows-per-s", rows)
    assert "rows-per-s" in said


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
    from jettison.lab.demo import command

    told: dict[str, Any] = {}
    monkeypatch.setattr(java, "require_java", lambda: None)
    monkeypatch.setattr(command, "run_demo", lambda console, **how: told.update(how))
    where = ["--json", str(tmp_path / "a.json"), "--picture", str(tmp_path / "a.png")]
    assert CliRunner().invoke(cli.app, ["demo", "--latency", "4", "--seconds", "1, 2.5,3", *where]).exit_code == 0
    assert told == {
        "bound_s": 4.0,
        "seconds": [1.0, 2.5, 3.0],
        "loads": [0.5, 3.0, 0.5],
        "capacity_known": False,
        "json_path": tmp_path / "a.json",
        "picture_path": tmp_path / "a.png",
        "cold": False,
        "kafka": False,
    }
    assert CliRunner().invoke(cli.app, ["demo", "--cold"]).exit_code == 0
    assert told["cold"]
    assert (told["bound_s"], told["seconds"]) == (10.0, [12.0, 42.0, 12.0])


def test_a_cold_demo_leaves_the_picture_of_the_warm_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from jettison.lab.demo import command

    pictures: list[Path] = []
    monkeypatch.setattr(java, "require_java", lambda: None)
    monkeypatch.setattr(command, "run_demo", lambda console, **how: pictures.append(how["picture_path"]))
    for arguments in (["demo"], ["demo", "--cold"], ["demo", "--kafka"]):
        assert CliRunner().invoke(cli.app, arguments).exit_code == 0
    assert pictures == [Path(f"jettison-demo{kind}.png") for kind in ("", "-cold", "-kafka")]
    said = " ".join(CliRunner().invoke(cli.app, ["demo", "--help"], env={"COLUMNS": "200"}).output.split())
    assert "about 4 minutes" in said
    assert "if not given, jettison-demo[-kafka][-cold].png" in said


def test_benchmarks_are_told_what_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    from jettison.lab.bench import command

    told: dict[str, Any] = {}
    monkeypatch.setattr(command, "run_bench", lambda console, **how: told.update(how) or [])
    for option in ("--repetitions", "--pairs", "--repeat"):
        assert CliRunner().invoke(cli.app, ["bench", "sharing", option, "3"]).exit_code == 0
        assert told.pop("repetitions") == 3
        assert told == {"name": "sharing", "json_path": None, "only": None} | NONE_GIVEN
        told.clear()
    typed = ["bench", "prove", "--workload", "taxi", "--rivals", "plain, tail", "--seconds", "20"]
    assert CliRunner().invoke(cli.app, typed).exit_code == 0
    assert (told["only"], told["rivals"], told["seconds"]) == ("taxi", ("plain", "tail"), 20.0)


def test_stored_ratios_are_checked_and_a_loss_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from jettison.lab.bench import command
    from jettison.lab.bench.result import Result, save

    stored, ratios = tmp_path / "stored.json", iter([1.0, 1.01, 1.0, 1.5, 1.51, 1.5])
    known = Result("cost", 1.0, "s", 1.0, 1.0, at_most=1.2, interval=(0.99, 1.01), config={"benchmark": "cost"})
    save([known], stored)
    pairs = []

    def measured(console: object, **how: Any) -> list[Result]:
        pairs.append(how["repetitions"])
        return [Result("cost", 1.0, "s", 1.0, next(ratios))]

    monkeypatch.setattr(command, "run_bench", measured)
    for status in (0, 1):
        found = tmp_path / f"{status}.json"
        typed = ["bench", "--check", str(stored), "--repetitions", "3", "--json", str(found)]
        assert CliRunner().invoke(cli.app, typed).exit_code == status
        assert json.loads(found.read_text())[0]["config"]["verdict"] == ("worse" if status else "as good")
    assert pairs == [3] * 6


def test_all_benchmarks_run_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from jettison.lab.bench import command

    names: list[str | None] = []
    monkeypatch.setattr(command, "run_bench", lambda console, **how: names.append(how["name"]) or [])
    assert CliRunner().invoke(cli.app, ["bench", "--all"]).exit_code == 0
    assert names == [None]
    for arguments, got in (([], "neither"), (["harm", "--all"], "both")):
        refused = CliRunner().invoke(cli.app, ["bench", *arguments])
        assert f"the name of a benchmark, or --all, got {got}" in str(refused.exception)
    assert names == [None]


@pytest.mark.parametrize(("required", "status"), [(False, 0), (True, 1)])
def test_a_bar_that_must_be_met_and_is_missed_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, required: bool, status: int
) -> None:
    from jettison.lab.bench import command
    from jettison.lab.bench.result import Result

    missed = Result("a", value=2.0, unit="s", at_most=1.0, required=required)
    monkeypatch.setattr(command, "run_bench", lambda console, **how: [missed])
    assert CliRunner().invoke(cli.app, ["bench", "harm", "--only", "files-3x"]).exit_code == status


def test_a_reproduction_is_told_what_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from jettison.lab.reproduce import command

    told: dict[str, Any] = {}
    monkeypatch.setattr(command, "run_reproduce", lambda console, paper, **how: told.update(how, paper=paper))
    typed = ["reproduce", "load", "--only", "figure4", "--only", "speed", "--quick", "--out", str(tmp_path)]
    assert CliRunner().invoke(cli.app, typed).exit_code == 0
    assert told == {"paper": "load", "quick": True, "seed": 1, "out": tmp_path, "only": ["figure4", "speed"]}


def test_a_run_is_told_what_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from jettison.spark import pipeline_command

    told: dict[str, Any] = {}
    monkeypatch.setattr(java, "require_java", lambda: None)
    monkeypatch.setattr(pipeline_command, "run_pipeline", lambda console, given, **how: told.update(how))
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE))
    typed = ["run", str(tmp_path / "p.json"), "--seconds", "2 minutes", "--dry-run"]
    assert CliRunner().invoke(cli.app, typed).exit_code == 0
    assert told == {"master": "local[*]", "dry_run": True, "seconds": 120.0, "drain": False}


def test_help_names_every_command() -> None:
    said = CliRunner().invoke(cli.app, ["--help"])
    assert said.exit_code == 0
    assert [command for command in COMMANDS if command not in said.output] == []


def help_of(command: str) -> list[str]:
    """Lines of a command's help in a terminal of 80 columns."""
    said = CliRunner().invoke(cli.app, [command, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert said.exit_code == 0
    return [" ".join(line.split()) for line in said.output.splitlines()]


def test_help_names_every_benchmark_and_how_long_it_takes_in_one_line() -> None:
    lines = help_of("bench")
    assert [one.name for one in BENCHMARKS.values() if f"{one.name} {one.length or '?'} {one.what}" not in lines] == []


def test_help_names_every_paper_how_long_it_takes_and_where_the_report_goes() -> None:
    lines = help_of("reproduce")
    for one in PAPERS.values():
        assert f"{one.name} {one.quick} {one.full or '?'} {one.what}" in lines
        parts = [f"{part.name} {part.length or '?'} {part.what}" for part in one.parts.values()]
        assert [part for part in parts if part not in lines] == []
    assert "[default: (reproduce-PAPER)]" in " ".join(lines).replace("│ │ ", "")


WITHOUT = """
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {absent!r} else found(name, package)
from jettison import cli, java
java.require_java = lambda: None
sys.argv = ["jettison", *{arguments!r}]
cli.main()
"""
NOT_THERE = " must be installed, got an environment without it"


def without(absent: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`jettison ARGUMENTS` in a process where some packages are not installed."""
    script = WITHOUT.format(absent=absent, arguments=arguments)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, cwd=cwd)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "absent", "said"),
    [
        (
            ["demo"],
            ["matplotlib"],
            f'matplotlib{NOT_THERE} for `jettison demo`. Hint: pip install "CLONE[demo]"',
        ),
        (
            ["demo"],
            ["pyspark", "matplotlib"],
            'without them for `jettison demo`. Hint: pip install "CLONE[spark,demo]"',
        ),
        (["run", "p.json"], ["pyspark"], f"pyspark{NOT_THERE} for `jettison run`"),
        (["bench", "replay"], ["pyspark"], f"pyspark{NOT_THERE} for `jettison bench replay`"),
        (
            ["bench", "harm", "--only", "kafka-3x"],
            ["confluent_kafka"],
            f'confluent_kafka{NOT_THERE} for Kafka. Hint: pip install "CLONE[kafka]"',
        ),
        (["reproduce", "sifter"], ["matplotlib"], f"matplotlib{NOT_THERE} for `jettison reproduce sifter`"),
    ],
)
def test_a_missing_extra_is_named_in_one_sentence(
    tmp_path: Path, arguments: list[str], absent: list[str], said: str
) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PIPELINE))
    done = without(absent, *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said.replace("CLONE", "/path/to/clone") in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_a_pure_benchmark_runs_without_any_extra(tmp_path: Path) -> None:
    done = without(["pyspark", "matplotlib", "numba"], "bench", "coverage", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_benchmarks_need_nothing_but_spark() -> None:
    script = WITHOUT.split("sys.argv")[0].format(absent=["matplotlib", "numba", "confluent_kafka"], arguments=[])
    script += "from jettison.lab.experiments import BENCHMARKS\nfor one in BENCHMARKS.values(): one.load()\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_version_is_told() -> None:
    said = CliRunner().invoke(cli.app, ["--version"])
    assert (said.exit_code, said.output) == (0, f"jettison {__version__}\n")
