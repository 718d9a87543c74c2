"""`policy="auto"` follows the rules and says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jettison as jt
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.stats import Stats
from jettison.core.storage import home
from jettison.errors import InvalidInput
from jettison.policy import Auto
from jettison.runtime.ledger import Ledger

BY_ZONE = Auto(group="zone", time="time", window="5 seconds")


def test_without_a_record_it_goes_by_what_the_program_says(tmp_path: Path) -> None:
    plain = jt.Shedder(latency="3 seconds", checkpoint=tmp_path, policy="auto")
    assert (type(plain.policy), plain.policy_cause) == (jt.UniformDrop, "nothing more is known of the data")
    grouped = jt.Shedder(latency="3 seconds", checkpoint=tmp_path, policy=BY_ZONE)
    assert type(grouped.policy) is jt.ConceptDrop
    assert jt.Shedder(latency="3 seconds", checkpoint=tmp_path).policy_cause == ""


@pytest.mark.parametrize("gone", [0, 20])
@pytest.mark.parametrize(("few", "kind"), [(1, jt.UniformDrop), (30, jt.ConceptDrop)])
def test_a_dry_run_on_record_decides_whether_groups_need_care(tmp_path: Path, few: int, kind: type, gone: int) -> None:
    ledger = Ledger.open(home(tmp_path) / "ledger", segment_bytes=500, keep_bytes=1_000)
    ledger.start(0.0, policy="UniformDrop", dry_run=True)
    for number in range(1, gone):  # and with them the file in which the start was
        ledger.batch(Stats(number, 0.0, 1.0, {}), latency_s=None)
    of_fare = AnswerBounds(answers=100, bounded=100 - few, few_rows=few, median=0.1, p95=0.2, foreseen=True)
    ledger.batch(Stats(0, 0.0, 1.0, {}), latency_s=None, answers={"fare": of_fare})
    chosen = jt.Shedder(latency="3 seconds", checkpoint=tmp_path, policy=BY_ZONE)
    assert type(chosen.policy) is kind
    elsewhere = Auto(group="zone", time="time", window="5 seconds", record=tmp_path)
    assert type(jt.Shedder(latency="3 seconds", checkpoint=tmp_path / "new", policy=elsewhere).policy) is kind
    assert "of the answers rest on too few rows" in chosen.policy_cause


@pytest.mark.parametrize("was_dry", [False, True])
@pytest.mark.parametrize("by_rules", [False, True])
def test_a_restart_keeps_the_policy_that_the_rules_chose(tmp_path: Path, by_rules: bool, was_dry: bool) -> None:
    """What the run itself put on record made the next one on its checkpoint another query."""
    ledger = Ledger.open(home(tmp_path) / "ledger")
    cause = {"policy_cause": "1.0% of the answers rest on too few rows"} if by_rules else {}
    ledger.start(0.0, policy="UniformDrop", dry_run=was_dry, **cause)
    of_fare = AnswerBounds(answers=100, bounded=70, few_rows=30, median=0.1, p95=0.2, foreseen=was_dry)
    ledger.batch(Stats(0, 0.0, 1.0, {}), latency_s=None, answers={"fare": of_fare})

    def kind(**settings: Any) -> type:
        return type(jt.Shedder(latency="3 seconds", checkpoint=tmp_path, **settings).policy)

    assert kind(policy=BY_ZONE) is (jt.UniformDrop if by_rules and not was_dry else jt.ConceptDrop)
    assert kind(policy=BY_ZONE, dry_run=True) is (jt.UniformDrop if by_rules else jt.ConceptDrop)
    assert kind(policy=replace(BY_ZONE, record=tmp_path)) is jt.ConceptDrop
    assert kind(policy=replace(BY_ZONE, whole_windows=True)) is jt.WindowDrop, "the program has the last word"


def test_a_record_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="needs the checkpoint of another run"):
        jt.Shedder(latency="3 seconds", checkpoint=tmp_path, policy=Auto(record=tmp_path / "misspelt"))


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        jt.Shedder(latency="3 seconds", checkpoint=tmp_path, policy="automatic")
