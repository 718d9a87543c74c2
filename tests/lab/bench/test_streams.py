"""Which stages count as the work of one run of a query. Starts no Spark session."""

from __future__ import annotations

import pytest

from jettison.lab.bench.streams import _is_of


def stage(run: str, batch: str) -> dict[str, str]:
    return {"description": f"id = 1\nrunId = {run}\nbatch = {batch}"}


@pytest.mark.parametrize(
    ("found", "belongs"),
    [
        (stage("ab-1", "2"), True),
        (stage("ab-1", "12"), True),
        (stage("ab-1", "0"), False),
        (stage("ab-1", "init"), False),
        (stage("ab-2", "2"), False),
        ({}, False),
    ],
)
def test_a_stage_belongs_to_its_run_and_batch(found: dict[str, str], belongs: bool) -> None:
    assert _is_of(found, "ab-1", 1) is belongs


def test_without_a_run_every_stage_counts() -> None:
    assert _is_of({}, "", 0)
