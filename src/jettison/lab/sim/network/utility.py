"""Tuple utility and value utility of a run, as the paper measures them (section 5.4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jettison.lab.sim.network.rows import Rows
from jettison.policies.network.drop_model import Vector
from jettison.policies.network.qos import LossTolerance, ValueUtility


def tuple_utility(delivered: Rows, wanted: Rows, graph: LossTolerance, epochs: Vector) -> float:
    """Utility by the share delivered in each epoch, averaged over epochs by the rows wanted in them.

    Rows belong to the epoch in which they arrived. An epoch is a time during which the same share is delivered: the
    whole run, once settled, where rates are constant. Short epochs of few rows would add the noise of counting to the
    shares, and every concave graph punishes noise. The paper weighs by "tuples seen", which for an epoch that delivers
    nothing would be none; weighing by the rows wanted counts such an epoch for what it is.
    """
    got, all_rows = (np.histogram(rows.arrivals, epochs)[0] for rows in (delivered, wanted))
    some = all_rows > 0
    if not some.any():
        return 1.0
    utilities = [graph.at(min(100.0, 100.0 * share)) for share in got[some] / all_rows[some]]
    return float(np.average(utilities, weights=all_rows[some]))


def value_utility(delivered: Rows, wanted: Rows, graph: ValueUtility, since: float) -> float:
    """Summed utility of the rows delivered, as a share of that of the rows wanted."""
    whole = _summed(wanted.where(wanted.arrivals >= since), graph)
    return _summed(delivered.where(delivered.arrivals >= since), graph) / whole if whole > 0 else 1.0


def total_loss(utilities: Mapping[str, float]) -> float:
    """Percent of the utility of all outputs together that was lost."""
    return 100.0 * (1.0 - sum(utilities.values()) / len(utilities))


def _summed(rows: Rows, graph: ValueUtility) -> float:
    utilities = np.zeros(len(rows))
    for low, high, utility in graph.intervals:
        utilities[(rows.values >= low) & (rows.values <= high)] = utility
    return float(utilities.sum())
