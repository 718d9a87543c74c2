from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jettison import java
from jettison.errors import Unsupported
from jettison.java import java_problem, parse_release

WAY_OUT = "install OpenJDK 17 and set JAVA_HOME to its directory."


def fake_java(home: Path, version_line: str, *, exit_code: int = 0) -> Path:
    """Write an executable that answers `-version` like a Java does, on standard error."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2\necho '{version_line}' >&2\nexit {exit_code}\n"
    )
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_a_new_enough_java_is_no_problem(tmp_path: Path, version: str) -> None:
    executable = fake_java(tmp_path, f'openjdk version "{version}" 2025-04-15')
    assert java_problem({"PATH": str(executable.parent)}) is None
    assert java_problem({"JAVA_HOME": str(tmp_path), "PATH": ""}) is None


@pytest.mark.parametrize(("version", "release"), [("1.8.0_412", 8), ("11.0.22", 11), ("16", 16)])
def test_an_old_java_is_named_with_the_way_out(tmp_path: Path, version: str, release: int) -> None:
    executable = fake_java(tmp_path, f'openjdk version "{version}"')
    expected = f"Jettison needs Java 17 or newer, found Java {release} ({executable}): {WAY_OUT}"
    assert java_problem({"PATH": str(executable.parent)}) == expected


def test_java_home_wins_over_path_even_when_it_is_wrong(tmp_path: Path) -> None:
    good = fake_java(tmp_path / "good", 'openjdk version "17.0.15"')
    environ = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(good.parent)}
    assert java_problem(environ) == (
        f"Jettison needs Java 17 or newer, found JAVA_HOME={tmp_path / 'gone'}, which holds no bin/java: {WAY_OUT}"
    )


def test_an_empty_java_home_counts_as_unset(tmp_path: Path) -> None:
    good = fake_java(tmp_path, 'openjdk version "17.0.15"')
    assert java_problem({"JAVA_HOME": "", "PATH": str(good.parent)}) is None


@pytest.mark.parametrize(("line", "code"), [("Unable to locate a Java Runtime.", 1), ('version "17"', 1), ("", 0)])
def test_a_stub_that_is_no_java_is_a_problem(tmp_path: Path, line: str, code: int) -> None:
    executable = fake_java(tmp_path, line, exit_code=code)
    problem = java_problem({"PATH": str(executable.parent)})
    assert problem is not None
    assert "does not tell its version" in problem


def test_a_file_that_cannot_run_is_a_problem(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "")
    executable.write_bytes(b"\x7fELF broken")
    assert "does not tell its version" in (java_problem({"PATH": str(executable.parent)}) or "")


def test_every_problem_is_one_sentence_on_one_line(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'java version "1.8.0_412"')
    environs = [{"PATH": ""}, {}, {"PATH": str(old.parent)}, {"JAVA_HOME": str(tmp_path)}]
    for environ in environs:
        problem = java_problem(environ)
        assert problem is not None
        assert "\n" not in problem
        assert problem.endswith(WAY_OUT)


def test_nothing_to_parse() -> None:
    assert parse_release("command not found") is None


def test_as_a_file_it_runs_alone_and_fails_with_the_sentence(tmp_path: Path) -> None:
    fake_java(tmp_path, 'openjdk version "11.0.2"')
    done = subprocess.run(
        [sys.executable, "-I", str(java.__file__)],
        env={"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "found Java 11" in done.stderr


def test_commands_that_need_java_are_refused_with_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unsupported, match="found Java 11"):
        java.require_java()
