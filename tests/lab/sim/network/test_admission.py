from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.stats import Budget, Stats
from jettison.lab.sim.network.admission import ADMISSIONS, AdmissionDrop, admitted, input_loads
from jettison.lab.sim.network.roadmap import load_at
from jettison.policies.network.candidates import drop_model
from networks import figure_6, random_network


@pytest.mark.parametrize("name", ADMISSIONS)
@given(loads=st.lists(st.floats(0.1, 100.0), min_size=1, max_size=8), share=st.floats(0.0, 1.5))
def test_the_excess_is_shed_exactly_where_it_can_be(name: str, loads: list[float], share: float) -> None:
    by_input = {f"i{n}": load for n, load in enumerate(loads)}
    keep = ADMISSIONS[name](by_input, share * sum(loads), np.random.default_rng(1))
    assert all(0.0 <= value <= 1.0 for value in keep.values())
    shed = sum(load * (1.0 - keep[input]) for input, load in by_input.items())
    assert shed == pytest.approx(min(share, 1.0) * sum(loads))


def test_each_rule_sheds_where_it_says() -> None:
    loads, random = {"a": 60.0, "b": 30.0, "c": 10.0}, np.random.default_rng(0)
    assert ADMISSIONS["Input-Cost-Top"](loads, 70.0, random) == pytest.approx({"a": 0.0, "b": 2 / 3, "c": 1.0})
    assert ADMISSIONS["Input-Uniform"](loads, 42.0, random) == pytest.approx({"a": 44 / 60, "b": 14 / 30, "c": 0.0})
    assert ADMISSIONS["Input-Cost-Uniform"](loads, 50.0, random) == pytest.approx(dict.fromkeys(loads, 0.5))
    first = {tuple(ADMISSIONS["Input-Random"](loads, 5.0, np.random.default_rng(n)).values()) for n in range(20)}
    assert len(first) == 3


@pytest.mark.parametrize("seed", range(3))
def test_the_networks_load_falls_by_what_was_asked(seed: int) -> None:
    model = drop_model(random_network(seed))
    loads = input_loads(model)
    assert sum(loads.values()) == pytest.approx(model.full_load)
    keep = ADMISSIONS["Input-Uniform"](loads, 0.3 * model.full_load, np.random.default_rng(0))
    assert load_at(model, admitted(model, keep)) == pytest.approx(0.7 * model.full_load)


def test_admission_control_is_a_policy_too() -> None:
    plan = AdmissionDrop(figure_6(), rule="Input-Cost-Uniform").plan(Stats(0, 0.0, 1.0), Budget(0.3, 0.3, 3.0, ""))
    keep = {name: setting.keep_fraction for name, setting in plan.points.items()}
    assert keep == pytest.approx({"a": 0.3, "f": 0.3, "one__two": 1.0, "one__three": 1.0})


@pytest.mark.long
def test_what_is_shed_does_not_depend_on_the_hashes_of_names() -> None:
    program = (
        "import numpy as np; from jettison.lab.sim.network.admission import input_cost_uniform as rule;"
        "print(rule({f'in{n}': 0.1 + n / 7 for n in range(18)}, 9.3, np.random.default_rng(0)))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
