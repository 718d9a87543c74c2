"""Ctrl-C in the middle of each command that starts Spark: one line, status 130, and no Java left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them"),
]
BEGUN_WITHIN_S, ENDED_WITHIN_S = 240.0, 60.0  # on a busy machine
SPARKS_OWN = ("WARNING: Using incubator modules", "Setting ", "To adjust logging level")
EXAMPLES = Path(__file__).parents[1] / "examples"


def group(leader: int) -> list[str]:
    """Commands of what still runs in a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        if rest.split()[0] != "Z" and int(rest.split()[3]) == leader:
            found.append(name.partition("(")[2])
    return found


@pytest.mark.parametrize(
    ("command", "begun"),
    [
        (["run", str(EXAMPLES / "readings.yaml")], "Running"),
        (["run", str(EXAMPLES / "network.yaml")], None),  # while it measures
        (["demo"], "Measuring"),
        (["bench", "sifter-lookup"], "sifter-lookup ..."),
        (["bench", "replay"], "replay ..."),
        (["reproduce", "window", "--quick", "--only", "saved"], "saved ..."),
        (["reproduce", "sifter", "--quick"], "speed ..."),
    ],
    ids=["run", "measuring", "demo", "bench", "bench-apart", "reproduce", "workers"],
)
@pytest.mark.parametrize("whole_group", [True, False], ids=["typed", "sent"])
def test_a_command_ends_with_one_line_and_nothing_is_left(
    tmp_path: Path, command: list[str], begun: str | None, whole_group: bool
) -> None:
    with (tmp_path / "said").open("w") as said, (tmp_path / "errors").open("w") as errors:
        running = subprocess.Popen(
            [sys.executable, "-m", "jettison.cli", *command],
            cwd=tmp_path,
            stdout=said,
            stderr=errors,
            start_new_session=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        until = time.monotonic() + BEGUN_WITHIN_S
        while True:
            java = "java" in group(running.pid) or command[:2] == ["reproduce", "sifter"]
            if java and (begun is None or begun in (tmp_path / "said").read_text()):
                break
            assert running.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() < until
            time.sleep(0.2)
        time.sleep(3.0)  # in the middle of it
        if whole_group:
            os.killpg(running.pid, signal.SIGINT)
        else:
            running.send_signal(signal.SIGINT)
        began = time.monotonic()
        running.wait(ENDED_WITHIN_S)
    print(f"{command}: {time.monotonic() - began:.1f} s, {(tmp_path / 'said').read_text()!r}")
    assert running.returncode == 130
    lines = (tmp_path / "errors").read_text().splitlines()
    assert [line for line in lines if not line.startswith(SPARKS_OWN)] == ["jettison: interrupted"]
    assert group(running.pid) == []
