"""Classical admission control, to compare with: four rules that look at loads and not at utilities (section 5.3).

Each returns how much of every input to keep so that the load falls by `excess`. They shed at inputs only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jettison.lab.sim.network.survival import feasible
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.network.optimum import Frontier

Admission = Callable[[Mapping[str, float], float, np.random.Generator], dict[str, float]]


def input_random(loads: Mapping[str, float], excess: float, random: np.random.Generator) -> dict[str, float]:
    """One input after the other, in random order, until enough is shed."""
    return _one_by_one(loads, excess, [list(loads)[i] for i in random.permutation(len(loads))])


def input_cost_top(loads: Mapping[str, float], excess: float, random: np.random.Generator) -> dict[str, float]:
    """One input after the other, the one with the highest load first.

    >>> input_cost_top({"a": 30.0, "b": 10.0}, 35.0, np.random.default_rng(0))
    {'a': 0.0, 'b': 0.5}
    """
    return _one_by_one(loads, excess, sorted(loads, key=lambda name: (-loads[name], name)))


def input_uniform(loads: Mapping[str, float], excess: float, random: np.random.Generator) -> dict[str, float]:
    """The same amount of load from every input; what one cannot give is shared among the others.

    >>> input_uniform({"a": 30.0, "b": 10.0}, 30.0, np.random.default_rng(0))
    {'a': 0.3333333333333333, 'b': 0.0}
    """
    return _evenly(loads, excess, dict.fromkeys(loads, 1.0))


def input_cost_uniform(loads: Mapping[str, float], excess: float, random: np.random.Generator) -> dict[str, float]:
    """Load from every input in proportion to its own, which is the same share of every input.

    >>> input_cost_uniform({"a": 30.0, "b": 10.0}, 30.0, np.random.default_rng(0))
    {'a': 0.25, 'b': 0.25}
    """
    return _evenly(loads, excess, dict(loads))


ADMISSIONS: Mapping[str, Admission] = {
    "Input-Random": input_random,
    "Input-Cost-Top": input_cost_top,
    "Input-Uniform": input_uniform,
    "Input-Cost-Uniform": input_cost_uniform,
}


def input_loads(model: DropModel) -> dict[str, float]:
    """Load that each input brings with nothing dropped: its coefficient times its rate."""
    gain = model.full_gain()
    return {
        location.name: float(gain[list(location.units)].sum())
        for location in model.locations
        if location.target is None
    }


def admitted(model: DropModel, keep: Mapping[str, float]) -> Vector:
    """Surviving shares when inputs are thinned to `keep` and nothing else is dropped."""
    survival = np.ones(model.units)
    for location in model.locations:
        if location.target is None:
            survival[list(location.units)] = keep.get(location.name, 1.0)
    return feasible(model, survival)


class AdmissionPlanner:
    """An admission rule as a planner: thins inputs, blind to utilities.

    A rule that draws at random draws the same in every call, so that a run keeps to one order of inputs.
    """

    def __init__(self, model: DropModel, rule: Admission, seed: int) -> None:
        self.model = model
        self._rule = rule
        self._seed = seed
        self._loads = input_loads(model)

    def at(self, load: float) -> Vector:
        """Surviving shares after thinning inputs until `load` is left."""
        keep = self._rule(self._loads, self.model.full_load - load, np.random.default_rng(self._seed))
        return admitted(self.model, keep)


class AdmissionDrop(NetworkDrop):
    """An admission control as a policy, to run beside `NetworkDrop`; it sheds at inputs only."""

    def __init__(self, graph: QueryGraph, *, rule: str, **settings: Any) -> None:
        self._rule = ADMISSIONS[rule]
        super().__init__(graph, **settings)

    def _survival(self, planner: Frontier, share: float) -> Vector:
        model = planner.model
        excess = (1.0 - share) * model.full_load
        return admitted(model, self._rule(input_loads(model), excess, np.random.default_rng(0)))


def _one_by_one(loads: Mapping[str, float], excess: float, order: Sequence[str]) -> dict[str, float]:
    keep = dict.fromkeys(loads, 1.0)
    for name in order:
        shed = min(loads[name], max(excess, 0.0))
        if shed > 0:
            keep[name] = 1.0 - shed / loads[name]
            excess -= shed
    return keep


def _evenly(loads: Mapping[str, float], excess: float, weights: dict[str, float]) -> dict[str, float]:
    """Shed in proportion to `weights`; inputs that run out pass their part on to the others."""
    left = dict(loads)
    open_inputs = [name for name in loads if loads[name] > 0]  # in order: sums must not depend on the hashes of names
    while excess > 1e-12 and open_inputs:
        per_weight = excess / sum(weights[name] for name in open_inputs)
        exhausted = [name for name in open_inputs if left[name] <= per_weight * weights[name]]
        for name in exhausted or open_inputs:
            shed = min(left[name], per_weight * weights[name])
            left[name] -= shed
            excess -= shed
        if not exhausted:
            break
        open_inputs = [name for name in open_inputs if name not in exhausted]
    return {name: left[name] / load if load > 0 else 1.0 for name, load in loads.items()}
