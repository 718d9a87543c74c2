"""The periodic monitor of a simulated network: a planner under a capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from jettison.core.plan import DropPlan
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.evaluate import drop_plan


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
    """

    def __init__(
        self, planner: Planner, *, capacity: float, headroom: float, coefficients: Mapping[str, float]
    ) -> None:
        self._planner = planner
        self._available = capacity * headroom
        self._coefficients = dict(coefficients)

    def plan(self, rates: Mapping[str, float]) -> DropPlan:
        """The plan for the load at `rates`."""
        model = self._planner.model
        load = sum(self._coefficients[name] * rate for name, rate in rates.items())
        available = self._available
        if load <= available or load <= 0:
            return drop_plan(model, np.ones(model.units), cause="within capacity")
        # The table was made at the model's rates; only the ratio of load to capacity matters.
        survival = self._planner.at(model.full_load * available / load)
        return drop_plan(model, survival, cause=f"load {load:.3g} against {available:.3g}")
