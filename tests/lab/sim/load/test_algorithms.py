"""The paper's setting, and the baselines: each does what its name says, on streams that plain Python runs in a moment."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from jettison.lab.sim.load import kernels
from jettison.lab.sim.load.algorithms import BaseLine, Paper, sketch_shape
from jettison.lab.sim.load.workload import Stream, StreamSettings, streams

SMALL = StreamSettings(rows=4000, distinct=256, cost_levels=32)
PAPER = Paper()
STRAW_MAN, FULL_KNOWLEDGE = Paper(costs=kernels.CONSTANT), Paper(costs=kernels.EXACT)


def stream_of(under_provisioning: float, **change: float) -> Stream:
    settings = dataclasses.replace(SMALL, under_provisioning=under_provisioning, **change)
    return next(iter(streams(settings, 1, 1, seed=3)))[1]


def waits_of(stream: Stream, kept: np.ndarray) -> np.ndarray:
    """What rows that are kept wait before one operator, by the definition."""
    free_ms, waits = 0.0, np.zeros(len(kept))
    for row in np.flatnonzero(kept):
        start_ms = max(free_ms, stream.arrivals_ms[row])
        waits[row], free_ms = start_ms - stream.arrivals_ms[row], start_ms + stream.costs_ms[row]
    return waits


def test_the_defaults_are_the_papers() -> None:
    assert StreamSettings() == StreamSettings(32_768, 4_096, 1.0, 64, 0.1, 6.4, 0.25)
    assert (PAPER.bound_ms, PAPER.epsilon, PAPER.delta) == (6.4, 0.05, 0.1)
    assert (PAPER.look_every, PAPER.tolerance) == (1024, 0.05)
    assert PAPER.margin is None  # then it is epsilon
    assert sketch_shape(PAPER.epsilon, PAPER.delta) == (4, 55)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.9])
def test_base_line_drops_its_share_whatever_rows_cost(share: float) -> None:
    stream = stream_of(share)
    outcome = BaseLine(share)(stream, 7)
    # Five standard deviations of a coin: the seed is fixed, so this is no toss.
    assert outcome.drop_share == pytest.approx(share, abs=5 * (share * (1 - share) / len(stream.keys)) ** 0.5)
    assert np.allclose(outcome.waits_ms, waits_of(stream, outcome.kept))
    if share:
        dropped, kept = stream.costs_ms[~outcome.kept], stream.costs_ms[outcome.kept]
        spread = 5 * stream.costs_ms.std() * (1 / len(dropped) + 1 / len(kept)) ** 0.5
        assert abs(dropped.mean() - kept.mean()) < spread
    assert (BaseLine(share)(stream, 8).kept != outcome.kept).any() == (share > 0)


@pytest.mark.parametrize("under_provisioning", [0.0, 0.25, 0.75])
def test_full_knowledge_never_passes_the_bound_on_the_mean(under_provisioning: float) -> None:
    stream = stream_of(under_provisioning)
    outcome = FULL_KNOWLEDGE(stream, 7)
    assert np.allclose(outcome.waits_ms, waits_of(stream, outcome.kept))
    kept = outcome.waits_ms[outcome.kept]
    assert (np.cumsum(kept) / np.arange(1, len(kept) + 1)).max() <= PAPER.bound_ms + 1e-9
    assert 0.0 < outcome.drop_share < 1.0
    assert FULL_KNOWLEDGE(stream_of(-1.0), 7).kept.all()


def test_straw_man_is_full_knowledge_where_all_rows_cost_the_same() -> None:
    same = stream_of(0.4, smallest_cost_ms=2.0, largest_cost_ms=2.0)
    assert (STRAW_MAN(same, 7).kept == FULL_KNOWLEDGE(same, 7).kept).all()


def test_straw_man_judges_by_the_mean_and_is_far_over_the_bound_where_costs_differ() -> None:
    stream = stream_of(0.4)
    turned = dataclasses.replace(stream, costs_ms=stream.costs_ms[::-1].copy())  # other costs, the same mean
    outcome, other = STRAW_MAN(stream, 7), STRAW_MAN(turned, 7)
    assert (outcome.kept == other.kept).all()
    assert (FULL_KNOWLEDGE(stream, 7).kept != FULL_KNOWLEDGE(turned, 7).kept).any()
    assert np.allclose(outcome.waits_ms, waits_of(stream, outcome.kept))
    assert outcome.mean_wait_ms > 2 * PAPER.bound_ms
    # A mean that is given instead: with half of it twice as many rows look as if they fitted.
    half = STRAW_MAN._replace(mean_cost_ms=stream.mean_cost_ms / 2)(stream, 7)
    assert half.kept.mean() > 1.5 * outcome.kept.mean()
