"""What the periodic monitor of a simulated network may be: a planner under a capacity, or admission control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from jettison.network.admission import Admission, admitted, input_loads
from jettison.network.drop_model import DropModel, Vector
from jettison.network.plans import drop_plan
from jettison.plan import DropPlan


class Planner(Protocol):
    """A road map or a frontier: the surviving shares for a load."""

    @property
    def model(self) -> DropModel:
        """The shedding problem that it has solved."""
        ...

    def at(self, load: float) -> Vector:
        """Surviving shares that need at most `load`."""
        ...


class LoadMonitor:
    """Compares the load of the moment with `headroom * capacity` and asks a planner for a plan that fits.

    Parameters
    ----------
    planner
        Made for the inputs' relative rates; the load of the moment scales it.
    capacity, headroom
        Work per unit of time that the processor offers, and the share of it to use.
    coefficients
        Load coefficient of each input.
    drain
        Time within which queued work is to be gone: it counts as extra load, spread over this time.
    """

    def __init__(
        self, planner: Planner, *, capacity: float, headroom: float, coefficients: Mapping[str, float], drain: float
    ) -> None:
        self._planner = planner
        self._available = capacity * headroom
        self._coefficients = dict(coefficients)
        self._drain = drain

    def plan(self, rates: Mapping[str, float], queued_work: float) -> DropPlan:
        """The plan for the load at `rates` and the work that waits."""
        model = self._planner.model
        load = sum(self._coefficients[name] * rate for name, rate in rates.items())
        available = max(0.0, self._available - queued_work / self._drain)
        if load <= available or load <= 0:
            return drop_plan(model, np.ones(model.units), cause="within capacity")
        # The table was made at the model's rates; only the ratio of load to capacity matters.
        survival = self._planner.at(model.full_load * available / load)
        return drop_plan(model, survival, cause=f"load {load:.3g} against {available:.3g}")


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
