"""Runs of `jettison bench faults` whose broker is paused or killed under them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jettison.lab.bench.fault_judge import judge
from jettison.lab.bench.fault_run import Drivers, drivers, run
from jettison.lab.bench.fault_scenario import KAFKA_EVERY, scenario
from jettison.lab.bench.kafka import Broker, running_broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    with running_broker() as running:
        yield running


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with drivers(tmp_path_factory.mktemp("drivers"), with_kafka=True) as made:
        yield made


@pytest.mark.parametrize("seed", [KAFKA_EVERY - 1, 2 * KAFKA_EVERY - 1])
def test_what_is_promised_holds(seed: int, tmp_path: Path, own_broker: Broker, started: Drivers) -> None:
    verdict = judge(run(scenario(seed, with_kafka=True), tmp_path, started, own_broker))
    assert verdict.holds, verdict.broken
