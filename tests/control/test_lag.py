"""What is behind the source always counts the rows of the batch that runs."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import PointStats, Stats


@pytest.mark.parametrize("pause_s", [0.0, 0.25])
def test_a_pause_between_two_batches_does_not_take_the_rows_of_the_second_out(pause_s: float) -> None:
    controller = Controller(ControlSettings(latency_bound_s=5.0))
    for now_s in np.arange(100.0, 104.0, 0.25):
        if now_s == 101.0:
            controller.step(Stats(0, 100.0, 1.0, {"rides": PointStats(1000, 1000)}, plan_version=1))
        running = not 101.0 <= now_s < 101.0 + pause_s
        controller.forecast(now_s, running=running, produced=(now_s, 1000.0 * now_s))
    assert controller.lag(104.0) == (3750, 4.0)  # since the first batch was triggered, as far as was told
