"""Every example pipeline runs as it is, as a command of its own, until each of its outputs has rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from jettison.cli import app
from jettison.pipeline.document import load
from processes import nothing_is_left_of

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SCHEMA = ROOT / "docs" / "pipeline.schema.json"
WITHIN_S, MINUTE_S = 300, 60
by_name = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def rows_in(folder: Path) -> int:
    """Rows in the files of a folder, but for one that is just being written."""
    found = 0
    for file in folder.rglob("*.parquet"):
        with suppress(OSError, ValueError):
            found += parquet.read_metadata(file).num_rows
    return found


def first_rows_s(path: Path, folder: Path) -> dict[str, float]:
    """Runs an example until each of its outputs has rows, and ends it; seconds until then, by output."""
    outputs = {name: folder / one.path for name, one in load(path).outputs.items() if one.path}
    said, found = folder / "said", dict[str, float]()
    with said.open("w") as file:
        command = [sys.executable, "-m", "jettison.cli", "run", str(path)]
        began_s = time.monotonic()
        running = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, start_new_session=True)
    try:
        while len(found) < len(outputs):
            assert running.poll() is None, said.read_text()
            assert time.monotonic() < began_s + WITHIN_S, said.read_text()
            time.sleep(0.5)
            for name, output in outputs.items():
                if name not in found and rows_in(output):
                    found[name] = round(time.monotonic() - began_s, 1)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=WITHIN_S) == 130, said.read_text()
        assert nothing_is_left_of(running.pid)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    assert "Running: " in said.read_text()
    assert "rows kept" in said.read_text()
    if path.stem == "windows":
        assert "|sensor|" in said.read_text()  # the other output is the screen
    return found


@pytest.mark.long
@by_name
def test_an_example_fills_each_of_its_outputs_and_ends_with_ctrl_c(
    path: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    for name, taken_s in first_rows_s(path, tmp_path).items():
        record_property(f"seconds to the first rows of {name}", taken_s)


@pytest.mark.live
@by_name
def test_an_example_fills_each_of_its_outputs_within_a_minute(path: Path, tmp_path: Path) -> None:
    """From the start of the command on, alone on the machine: `pytest -m live -rA` shows the times."""
    taken_s = first_rows_s(path, tmp_path)
    print(f"{path.stem}: seconds to the first rows {taken_s}")
    assert max(taken_s.values()) < MINUTE_S


@by_name
def test_an_example_names_the_schema_to_editors(path: Path) -> None:
    (_, _, given) = path.read_text().splitlines()[0].partition("yaml-language-server: $schema=")
    assert (path.parent / given).resolve() == SCHEMA


def test_the_published_schema_is_what_the_command_prints() -> None:
    """After a change: `jettison plan --schema > docs/pipeline.schema.json`."""
    done = CliRunner().invoke(app, ["plan", "--schema"])
    assert SCHEMA.read_text() == done.output
    assert json.loads(done.output)["$ref"] == "#/$defs/Pipeline"
