"""The compiled loops decide about every row as the readable classes do. Without numba they run as plain Python."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from jettison.costs.check import AverageCheck, Check, RowCheck, SlidingAverageCheck
from jettison.costs.hashing import SharedHashes
from jettison.costs.imposed import ImposedLoadSettings, ImposedLoadShedder
from jettison.costs.operator import SettlingOperator, StabilitySettings
from jettison.costs.residuals import Residuals
from jettison.costs.shedder import LatencyShedder, SyncForm
from jettison.sim.load import kernels
from jettison.sim.load.algorithms import OursSettings, PaperSettings, las, ours
from jettison.sim.load.replay import Outcome, replay_imposed, replay_paper, warmed_up
from jettison.sim.load.workload import Stream, StreamSettings, streams

SMALL = StreamSettings(rows=3000, distinct=120, cost_levels=12)
SYNC = {
    kernels.LITERAL: SyncForm.LITERAL,
    kernels.IN_TURN: SyncForm.IN_TURN,
    kernels.IMMEDIATE: SyncForm.IMMEDIATE,
}
PAPER = PaperSettings(epsilon=0.3, stability=StabilitySettings(rows=100, tolerance=0.2))


def check_of(settings: PaperSettings) -> Check:
    if settings.check == kernels.PER_ROW:
        return RowCheck(settings.bound_ms)
    if settings.check == kernels.SLIDING:
        return SlidingAverageCheck(settings.bound_ms, settings.window)
    return AverageCheck(settings.bound_ms, literal=settings.check == kernels.LISTING)


def plain_las(settings: PaperSettings, stream: Stream, seed: int) -> Outcome:
    hashes = SharedHashes(4, int(np.ceil(np.e / settings.epsilon)), seed)
    operator = SettlingOperator(hashes, settings.stability)
    shedder = LatencyShedder(
        check_of(settings),
        margin=settings.epsilon if settings.margin is None else settings.margin,
        sync=SYNC[settings.sync],
        clamp_to_now=settings.clamp_to_now,
    )
    if settings.warm_up and (costs := warmed_up(stream, hashes, operator)) is not None:
        shedder.receive_costs(costs)
    return replay_paper(stream, hashes, shedder, operator)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"margin": 0.0},
        {"warm_up": False},
        {"check": kernels.PER_ROW},
        {"check": kernels.SLIDING, "window": 50},
        {"check": kernels.LISTING},
        {"sync": kernels.LITERAL},
        {"sync": kernels.IMMEDIATE},
        {"sync": kernels.IMMEDIATE, "warm_up": False},
        {"clamp_to_now": False, "sync": kernels.LITERAL},
    ],
    ids=str,
)
@pytest.mark.parametrize("under_provisioning", [-0.3, 0.4])
def test_las_decides_as_its_state_machines_do(change: dict[str, object], under_provisioning: float) -> None:
    settings = dataclasses.replace(PAPER, **change)
    workload = dataclasses.replace(SMALL, under_provisioning=under_provisioning)
    for seed, stream in streams(workload, associations=2, seeds=1, seed=3):
        fast, plain = las(settings)(stream, seed), plain_las(settings, stream, seed)
        assert (fast.kept == plain.kept).all()
        assert np.allclose(fast.waits_ms, plain.waits_ms)


@pytest.mark.parametrize("sync_every", [1, 8])
@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("under_provisioning", [-0.3, 0.4])
def test_ours_decides_as_its_class_does(sync_every: int, with_values: bool, under_provisioning: float) -> None:
    settings = OursSettings(rows=2, columns=64, costs_every=200, sync_every=sync_every)
    workload = dataclasses.replace(SMALL, under_provisioning=under_provisioning)
    for seed, stream in streams(workload, associations=2, seeds=1, seed=4):
        values = np.where(stream.keys % 5 == 0, 3.0, 0.5) if with_values else None
        shedder = ImposedLoadShedder(ImposedLoadSettings(settings.bound_ms), Residuals(settings.memory_rows))
        plain = replay_imposed(stream, SharedHashes(2, 64, seed), shedder, 200, sync_every, settings.forget, values)
        fast = ours(settings, values)(stream, seed)
        assert (fast.kept == plain.kept).all()
        assert np.allclose(fast.waits_ms, plain.waits_ms)
