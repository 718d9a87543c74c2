"""The example pipeline can be planned; its aggregate uses weights, so rows before it may be dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.pipeline.document import load, require_runnable
from jettison.pipeline.plan_text import told
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.network_tables import describe

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "network.yaml"


def test_the_example_network_is_planned_with_weights_of_its_outputs() -> None:
    pipeline = load(EXAMPLE)
    names = {location.name for location in drop_model(pipeline.graph).locations}
    assert names == {"readings", "parse__fingerprints", "parse__hot", "parse__means"}
    first_row = next(line for line in describe(pipeline.graph).splitlines() if line.startswith("0.0%"))
    assert "4.000" in first_row  # one for each output, but two for the alarms


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_be_run_and_says_where_rows_may_be_dropped(path: Path) -> None:
    pipeline = load(path)
    require_runnable(pipeline)
    assert "Rows may be dropped at: readings" in told(pipeline)
