"""What the compiled loops decide: LAS row by row as the paper's state machines do, and what its literal forms lead to."""

from __future__ import annotations

import dataclasses
from collections import deque

import numpy as np
import pytest

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.lab.reproduce.load.paper_rule import PaperPair
from jettison.lab.sim.load import kernels
from jettison.lab.sim.load.algorithms import Outcome, Paper
from jettison.lab.sim.load.workload import Stream, StreamSettings, streams

SMALL = StreamSettings(rows=3000, distinct=120, cost_levels=12)
LAS = Paper(epsilon=0.3, look_every=100, tolerance=0.2)


def plain(settings: Paper, stream: Stream, seed: int) -> Outcome:
    """A first-in first-out operator that tells of a row once it has ended."""
    hashes = SharedHashes(4, int(np.ceil(np.e / settings.epsilon)), seed)
    margin = settings.epsilon if settings.margin is None else settings.margin
    stability = {"look_every": settings.look_every, "tolerance": settings.tolerance}
    pair = PaperPair(settings.bound_ms, hashes, margin=margin, **stability)
    cells = hashes.cells(fingerprints(np.arange(stream.distinct))).T
    if settings.warm_up:
        any(pair.learn(cells[key], cost) for key, cost in zip(stream.past_keys, stream.past_costs_ms, strict=True))
    free_ms, queue = 0.0, deque[tuple[float, int]]()
    kept, waits = np.zeros(len(stream.keys), dtype=bool), np.zeros(len(stream.keys))
    for row, now in enumerate(stream.arrivals_ms):
        while queue and queue[0][0] <= now:
            ended, done = queue.popleft()
            pair.executed(cells[stream.keys[done]], stream.costs_ms[done], ended)
        kept[row] = pair.keeps(cells[stream.keys[row]], now)
        if kept[row]:
            waits[row] = max(0.0, free_ms - now)
            free_ms = max(free_ms, now) + stream.costs_ms[row]
            queue.append((free_ms, row))
    return Outcome(kept, waits)


def some(under_provisioning: float) -> list[tuple[int, Stream]]:
    return list(streams(dataclasses.replace(SMALL, under_provisioning=under_provisioning), 2, 1, seed=3))


@pytest.mark.parametrize("change", [{}, {"margin": 0.0}, {"warm_up": False}], ids=str)
@pytest.mark.parametrize("under_provisioning", [-0.3, 0.4])
def test_las_decides_as_its_state_machines_do(change: dict[str, object], under_provisioning: float) -> None:
    settings = LAS._replace(**change)
    for seed, stream in some(under_provisioning):
        fast, slow = settings(stream, seed), plain(settings, stream, seed)
        assert (fast.kept == slow.kept).all()
        assert np.allclose(fast.waits_ms, slow.waits_ms)


def test_the_listed_check_never_recovers() -> None:
    # With all costs known the estimated waits are the real ones.
    for seed, stream in some(0.4):
        outcome = Paper(costs=kernels.EXACT, as_listed=True)(stream, seed)
        means = np.cumsum(outcome.waits_ms) / np.maximum(np.cumsum(outcome.kept), 1)
        over = int(np.argmax(means > LAS.bound_ms))
        assert outcome.kept[: over + 1].all()
        assert not outcome.kept[over + 1 :].any()


@pytest.mark.parametrize(
    "form", [{"sync": kernels.LITERAL}, {"sync": kernels.IMMEDIATE}, {"clamp_to_now": False}], ids=str
)
def test_each_literal_form_makes_a_difference(form: dict[str, object]) -> None:
    changed = LAS._replace(**form)
    assert any(
        (changed(stream, seed).kept != LAS(stream, seed).kept).any() for x in (-0.3, 0.4) for seed, stream in some(x)
    )


def test_an_immediate_reply_ends_the_backlog_of_a_cold_start_sooner() -> None:
    for seed, stream in some(0.4):
        waits = [
            LAS._replace(warm_up=False, sync=sync)(stream, seed).mean_wait_ms
            for sync in (kernels.IMMEDIATE, kernels.IN_TURN)
        ]
        assert waits[0] < waits[1]
