"""What `jettison reproduce window` says before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.errors import Unsupported
from jettison.reproduce.report import RunSettings
from jettison.reproduce.window import run


def test_without_java_it_says_so_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said: list[str] = []
    with pytest.raises(Unsupported, match="needs Java 17"):
        run(RunSettings(quick=True, seed=1, out=tmp_path, say=said.append))
    assert not said
