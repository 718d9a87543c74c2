"""Every line that the documents have for a shell is run, or named here with the reason why it is not.

Those that need Spark run where their queries are: `RUN` says where. What is typed and not run is parsed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from doc_blocks import ROOT, blocks, comes_out, languages, typed, words
from jettison.cli import app
from jettison.errors import JettisonError
from page_ledgers import query

DOCUMENTS = [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]]
HERE = "here"
RUN = {
    "docs/cluster.md": HERE,
    "docs/networks.md": HERE,
    "docs/page.md": HERE,
    "docs/pipelines.md": HERE,
    "docs/settle.md": "tests/spark/test_reconcile.py",
    "docs/steering.md": HERE,
}
"""By page, where its lines are run, but for those below."""
NOT_RUN = {
    "make ": "sets up, or runs all tests; test_docs.py looks whether the target is there",
    "pip install ": "installs",
    "spark-submit ": "needs a cluster and a broker: `make test-cluster` runs the job",
    "jettison dashboard ": "until Ctrl-C: tests/page/test_server.py",
    "jettison plan examples/network.yaml --calibrate": "measures on Spark: tests/spark/test_pipeline.py; planned here",
    "jettison run examples/network.yaml": "half a minute on Spark: tests/examples",
    "jettison run fares.yaml": "needs a broker: tests/spark/test_pipeline.py runs the file over other rows",
    "jettison reproduce ": "minutes: `make test-long` runs parts",
    "JETTISON_DATA=folder jettison reproduce ": "needs data that is not in the repository",
    "jettison bench ": "minutes",
}
"""Beginnings of lines, and why they are not run."""
OUTPUT = {
    "ARCHITECTURE.md": "a drawing",
    "README.md": "tests/runtime/test_status.py",
    "docs/dry-run.md": "tests/runtime/test_status.py",
    "docs/pipelines.md": HERE,
    "docs/window-drops.md": "tests/spark/test_doc_blocks.py",
}
"""Blocks of what comes out, one a page, and where it is compared with what does."""
YAML = {"docs/page.md": "tests/test_docs.py", "docs/pipelines.md": "tests/spark/test_pipeline.py"}
"""Blocks of YAML, and where they are read or run."""


def to_run(document: str) -> list[str]:
    return [line for line in typed(document) if not line.startswith(tuple(NOT_RUN))]


def jettison(line: str) -> str:
    """What the command says, as it is typed."""
    done = CliRunner().invoke(app, words(line)[1:])
    assert done.exit_code == 0, f"{line}: {done.output} {done.exception}"
    return done.output


def test_no_block_is_left_out() -> None:
    assert [name for name in DOCUMENTS if to_run(name) and name not in RUN] == []
    every = [line for name in DOCUMENTS for line in typed(name)]
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line in every)] == []
    assert {name: len(comes_out(name)) for name in DOCUMENTS if comes_out(name)} == dict.fromkeys(OUTPUT, 1)
    assert {name: len(blocks(name, "yaml")) for name in DOCUMENTS if blocks(name, "yaml")} == dict.fromkeys(YAML, 1)
    assert {language for name in DOCUMENTS for language in languages(name)} == {"", "python", "yaml"}


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if any("jettison " in one for one in typed(name))])
def test_a_line_that_is_typed_is_understood(document: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for line in typed(document):
        (program, *given) = words(line)
        if program == "jettison":
            values = ["2" if word == "N" else word for word in given[1:]]
            commands[given[0]].make_context(given[0], values)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the queries that the pages name have run."""
    monkeypatch.chdir(tmp_path)
    for name in ("rides", "fares"):
        query(tmp_path / "checkpoints" / name)
    return tmp_path


def test_the_page_and_what_shows_the_same(there: Path) -> None:
    top, report = to_run("docs/page.md")
    assert "twice too many rows" in jettison(top)
    jettison(report)
    assert "twice too many rows" in (there / "rides.html").read_text()


def test_orders(there: Path) -> None:
    latency, keep, dry, shown, clear = to_run("docs/steering.md")
    for line in (latency, keep, dry):
        jettison(line)
    said = jettison(shown)
    assert "the sink is slow today" in said
    assert "audit" in said
    jettison(clear)
    assert "the sink is slow today" not in jettison(shown)


def test_pipelines(there: Path) -> None:
    (there / "fares.yaml").write_text(blocks("docs/pipelines.md", "yaml")[0])
    (line,) = to_run("docs/pipelines.md")
    assert "Rows may be dropped at: rides." in jettison(line)


def test_a_mistake_in_a_pipeline_is_named_as_the_page_says(there: Path) -> None:
    text = blocks("docs/pipelines.md", "yaml")[0]
    (there / "fares.yaml").write_text(text.replace("    group: zone", "    grup: zone"))
    with pytest.raises(JettisonError) as refused:
        CliRunner().invoke(app, ["plan", "fares.yaml"], catch_exceptions=False)
    (shown,) = comes_out("docs/pipelines.md")
    assert re.fullmatch(re.escape(shown.strip()).replace(r"\.\.\.", ".*"), f"jettison: {refused.value}")


def test_networks(there: Path) -> None:
    (line,) = (line for line in typed("docs/networks.md") if "--calibrate" in line)
    said = jettison(line.replace("examples/", f"{ROOT}/examples/").replace("--calibrate", ""))
    assert "`jettison plan FILE --calibrate` measures it" in said


def test_the_package_for_a_cluster(tmp_path: Path) -> None:
    (line,) = to_run("docs/cluster.md")
    shutil.copytree(ROOT / "src" / "jettison", tmp_path / "src" / "jettison")
    subprocess.run(
        line.replace("/path/to/clone", str(tmp_path)).replace("python", sys.executable), shell=True, check=True
    )
    assert "jettison/spark/guard.py" in zipfile.ZipFile(tmp_path / "jettison.zip").namelist()
