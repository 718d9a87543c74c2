"""From the first batch measured until the fifth, a batch keeps at least a quarter of the share of the one before it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import Budget
from jettison.lab.sim.plant import Plant, PlantSettings

MEASURED, QUARTER = 5, 0.25


class Noted(Controller):
    """Remembers from when each plan counted, its budget, and how many batches had been measured when it was made."""

    def __init__(self, bound_s: float) -> None:
        super().__init__(ControlSettings(bound_s))
        self.noted: list[tuple[float, Budget, int]] = []

    def planned(self, version: int, from_s: float = 0.0) -> None:
        super().planned(version, from_s)
        self.noted.append((from_s, self.budget, self.model.batches))

    def in_force(self, start_s: float) -> tuple[float, Budget, int]:
        return self.noted[bisect_right(self.noted, start_s, key=lambda plan: plan[0]) - 1]


PLANTS = st.builds(
    PlantSettings,
    fixed_s=st.floats(0.15, 2.0),
    per_kept_row_s=st.sampled_from([2e-6, 1e-5, 1e-3]),
    per_seen_row_s=st.sampled_from([2e-7, 1e-6]),
    noise=st.floats(0.0, 0.4),
    outlier_chance=st.sampled_from([0.0, 0.2]),
    first_batch_s=st.sampled_from([0.0, 0.5, 4.0, 12.0]),
    warm_up_factor=st.sampled_from([1.0, 3.0]),
    cold_factor=st.sampled_from([0.0, 3.0]),
    observes_arrivals=st.booleans(),
    reports_work=st.booleans(),
    report_delay_s=st.sampled_from([0.05, 0.5]),
    trigger_interval_s=st.sampled_from([0.0, 1.0]),
    lump_s=st.just(0.1),
    seed=st.integers(0, 1000),
)


# Without the rule the first goes to 0.05 at once, the second to 0.22 when four batches were measured.
MODEST = PlantSettings(fixed_s=0.6, per_kept_row_s=2e-6, per_seen_row_s=2e-7, warm_up_factor=1.0, lump_s=0.1)
MODEST = replace(MODEST, noise=0.09112773176782936, outlier_chance=0.2, first_batch_s=0.5, cold_factor=3.0)
SLOW_ROWS = PlantSettings(fixed_s=0.8841819878094254, per_kept_row_s=1e-3, per_seen_row_s=1e-6, lump_s=0.1, seed=154)


@settings(max_examples=60)
@given(
    PLANTS,
    st.sampled_from([2.0, 5.0]),
    st.lists(st.sampled_from([0.1, 0.5, 2.0, 20.0, 60.0]), min_size=1, max_size=3),
    st.floats(0.5, 4.0),
)
@example(replace(MODEST, fixed_s=0.6004324555315815, trigger_interval_s=1.0, seed=196), 2.0, [0.5], 2.0)
@example(replace(SLOW_ROWS, noise=0.10878187527741462, outlier_chance=0.2), 5.0, [0.5], 2.0)
def test_the_first_cuts_go_to_a_quarter_at_most(
    plant: PlantSettings, bound_s: float, loads: list[float], step_s: float
) -> None:
    """Whatever the load and its steps, the costs and their noise.

    The third batch may be cut further: when it starts nothing was measured, but for how long the first two took.
    """
    controller, capacity = Noted(bound_s), plant.capacity_rows_per_s(max(0.4 * bound_s, 2 * plant.fixed_s))
    rates = [capacity * load for load in loads]
    trace = Plant(plant, lambda now_s: rates[min(int(now_s / step_s), len(rates) - 1)]).run(controller, 15.0)
    before = 1.0
    for batch in trace:
        _, budget, measured = controller.in_force(batch.stats.started_s)
        if 0 < measured < MEASURED:
            assert budget.share >= QUARTER * before * (1 - 1e-9)
        before = budget.share
