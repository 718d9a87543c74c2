"""The notebook is executed as it stands, cell by cell: its query sheds, and its pictures show that."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
import pytest
from pyspark.sql import SparkSession

from doc_blocks import ROOT

NOTEBOOK = ROOT / "examples" / "finished_query.ipynb"


def cells(kind: str) -> list[str]:
    return ["".join(one["source"]) for one in json.loads(NOTEBOOK.read_text())["cells"] if one["cell_type"] == kind]


@pytest.mark.spark
@pytest.mark.long
def test_the_notebook_draws_a_query_that_shed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    plt.switch_backend("agg")
    figures: list[Any] = []
    monkeypatch.setattr(plt, "show", lambda: figures.append(plt.gcf()))
    names: dict[str, Any] = {}
    measure, run, *pictures = cells("code")
    exec(measure, names)
    exec(run, names)
    assert names["shedder"].status().mode == "ended"
    for cell in pictures:
        exec(cell, names)
    (counts, latency), (answers,), (shares,) = (figure.axes for figure in figures)
    seen, kept = (line.get_ydata() for line in counts.lines)
    assert len(seen) == len(kept) == len(latency.lines[0].get_ydata()) >= 6
    assert any(few < many for few, many in zip(kept, seen, strict=True))
    assert min(shares.lines[0].get_ydata()) < 1.0
    # Of every answer a point between its bounds; those of shed rows have some width.
    assert sum(len(bars.lines[0].get_ydata()) for bars in answers.containers) == len(names["found"]) > 0
    widths = [row.upper - row.lower for row in names["found"] if row.status != "exact" and row.upper is not None]
    assert max(widths, default=0.0) > 0.0
    plt.close("all")


def test_the_notebook_is_short_and_has_nothing_of_the_machine_on_which_it_was_drawn() -> None:
    assert sum(len(one.split()) for one in cells("markdown")) < 250
    outputs = [output for one in json.loads(NOTEBOOK.read_text())["cells"] for output in one.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
