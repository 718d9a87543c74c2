"""A gain near its bar is judged by its interval, so that no seed decides."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.reproduce.concept.harness import Outcome, Run
from jettison.reproduce.concept.verdicts import _gain_at_least


def run_with(errors: np.ndarray) -> Run:
    return Run("stream", "method", 0.1, [Outcome(100, 10, float(error), 0, 5, 0.0) for error in errors])


def test_a_gain_that_never_varies_is_itself():
    assert _gain_at_least(run_with(np.full(9, 0.6)), run_with(np.full(9, 0.05))) == pytest.approx(12.0)


def test_a_true_gain_of_nine_is_hardly_ever_taken_for_ten():
    taken = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        ours = random.gamma(4.0, 0.06 / 4.0, 24)
        taken += _gain_at_least(run_with(np.full(24, 0.54)), run_with(ours)) >= 10.0
    assert taken <= 4
