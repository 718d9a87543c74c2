"""The short form of `jettison bench faults`: a few runs in which much goes wrong at once, in drivers that are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jettison.lab.bench.fault_judge import judge
from jettison.lab.bench.fault_run import Drivers, drivers, run
from jettison.lab.bench.fault_scenario import scenario

pytestmark = [pytest.mark.long, pytest.mark.spark]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with drivers(tmp_path_factory.mktemp("drivers"), with_kafka=False) as made:
        yield made


@pytest.mark.parametrize("seed", range(4))
def test_what_is_promised_holds(seed: int, tmp_path, started: Drivers) -> None:
    verdict = judge(run(scenario(seed, with_kafka=False), tmp_path, started, None))
    assert verdict.holds, verdict.broken
