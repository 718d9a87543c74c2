from __future__ import annotations

import base64
import dataclasses

import pytest

from jettison.errors import InvalidSetting
from jettison.plan import DropPlan
from jettison.settings import CostDrop

CELLS = base64.b64encode(bytes(4 * 6)).decode()
WHOLE = CostDrop(bound_s=2.0, rows=2, columns=3, seed=1, counts=CELLS, costs=CELLS, keep_fraction=0.5)


def test_it_travels_in_a_plan() -> None:
    plan = DropPlan(4, {"score": WHOLE}, cause="learned")
    assert DropPlan.from_json(plan.to_json()) == plan
    assert not WHOLE.keeps_everything
    assert dataclasses.replace(WHOLE, keep_fraction=1.0).keeps_everything


@pytest.mark.parametrize(
    "change",
    [{"bound_s": 0.0}, {"bound_s": float("nan")}, {"rows": 0}, {"columns": 4}, {"counts": ""}, {"keep_fraction": 1.4}],
    ids=str,
)
def test_what_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        dataclasses.replace(WHOLE, **change)
