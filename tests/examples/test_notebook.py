"""The notebook runs as it stands, and what lies in the repository has the plots of such a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "first_query.ipynb"


def images(notebook: dict[str, Any]) -> list[str]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def test_the_notebook_is_stored_with_its_plots_and_stays_small() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert len(images(notebook)) == 2
    assert NOTEBOOK.stat().st_size < 150_000
    assert [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"] == [1, 2, 3, 4, 5]


@pytest.mark.long
@pytest.mark.spark
def test_the_notebook_runs_and_draws(tmp_path: Path) -> None:
    copy = tmp_path / NOTEBOOK.name
    copy.write_bytes(NOTEBOOK.read_bytes())
    command = [sys.executable, str(ROOT / "tests" / "notebook.py"), str(copy)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert len(images(json.loads(copy.read_text()))) == 2
