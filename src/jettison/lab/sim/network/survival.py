"""What surviving shares come to, by the linear model: shares delivered, and what they are worth."""

from __future__ import annotations

import numpy as np

from jettison.policies.network.drop_model import DropModel, Vector


def feasible(model: DropModel, survival: Vector) -> Vector:
    """`survival` with each unit cut to what reaches it."""
    result, feeds = np.array(survival, dtype=float), model.feeds
    for unit in range(model.units):
        start, end = feeds.indptr[unit], feeds.indptr[unit + 1]
        limit = 1.0 if model.at_input[unit] else float(feeds.data[start:end] @ result[feeds.indices[start:end]])
        result[unit] = min(max(result[unit], 0.0), limit)
    return result


def delivered(model: DropModel, survival: Vector) -> dict[str, float]:
    """Share of its rows that each output gets."""
    result = dict.fromkeys(model.loss_tolerance, 0.0)
    empty = set(model.loss_tolerance) - {delivery.output for delivery in model.deliveries}
    for delivery, share in zip(model.deliveries, model.delivery @ survival, strict=True):
        result[delivery.output] += delivery.share * float(share)
    return {name: 1.0 if name in empty else min(1.0, share) for name, share in result.items()}


def utilities(model: DropModel, survival: Vector) -> dict[str, float]:
    """Utility of each output, in [0, 1], by its loss-tolerance graph."""
    return {name: model.loss_tolerance[name].at(100 * d) for name, d in delivered(model, survival).items()}


def utility(model: DropModel, survival: Vector) -> float:
    """What the planners maximise: weighted utility over all outputs, of the rows actually chosen."""
    total = model.floor
    for delivery, share in zip(model.deliveries, model.delivery @ survival, strict=True):
        total += sum(piece.slope * min(max(share - piece.low, 0.0), piece.length) for piece in delivery.pieces)
    return float(total)
