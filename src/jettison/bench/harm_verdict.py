"""What the records of one case come to: rows dropped, latency, and the share kept beside the ideal one. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Record = Mapping[str, Any]
FloatArray = npt.NDArray[np.float64]
_SAMPLES = 200


def dropped_share(records: Sequence[Record], *, from_s: float = 0.0, to_s: float = math.inf) -> float:
    """Share of the rows dropped, over batches that started between two times after the query's start.

    Not a number where a batch has no exact count on record, or there is no such batch: what is not known does not hold.
    """
    batches = _started(records, from_s, to_s)
    if not batches or not all(batch.get("exact") for batch in batches):
        return math.nan
    seen = sum(batch["seen"] for batch in batches)
    return float(sum(batch["seen"] - batch["kept"] for batch in batches) / seen)


def kept_of_ideal(records: Sequence[Record], *, from_s: float, ideal: float) -> float:
    """Share kept over the ideal one, over batches that started from then on."""
    return (1.0 - dropped_share(records, from_s=from_s)) / ideal


def latency_s(records: Sequence[Record], *, from_s: float, quantile: float = 0.95) -> float:
    """Latency of the rows that arrived from then on; of rows that still wait at the end, their wait so far.

    Not a number where no row arrived.
    """
    header, batches = records[0], records[1:]
    begin_s = header["query_started_s"] + from_s
    arrivals = [_spread(batch["oldest_arrival_s"], batch["newest_arrival_s"]) for batch in batches]
    committed = [batch["started_epoch_s"] + batch["duration_ms"]["triggerExecution"] / 1e3 for batch in batches]
    rows = [float(batch["rows"]) for batch in batches]
    end_s = header["feed_started_s"] + sum(phase["duration_s"] for phase in header["phases"])
    taken_s = batches[-1]["newest_arrival_s"] if batches else header["feed_started_s"]
    if taken_s < end_s:
        arrivals.append(_spread(taken_s, end_s))
        committed.append(header["ended_s"])
        rows.append((end_s - taken_s) * header["phases"][-1]["rows_per_s"])
    when = np.concatenate(arrivals)
    value = np.concatenate([done_s - arrived for done_s, arrived in zip(committed, arrivals, strict=True)])
    weight = np.repeat(np.array(rows) / _SAMPLES, _SAMPLES)
    inside = when >= begin_s
    return _weighted_quantile(value[inside], weight[inside], quantile)


def bound_holds_from_s(records: Sequence[Record], bound_s: float) -> float:
    """Whole seconds after the query's start from which the 95 % latency of the rows to come is within the bound for good.

    Infinite where it never is.
    """
    last_s = math.ceil(sum(phase["duration_s"] for phase in records[0]["phases"]))
    broken = [at_s for at_s in range(last_s) if latency_s(records, from_s=at_s) > bound_s]
    holds_s = broken[-1] + 1 if broken else 0
    return float(holds_s) if holds_s < last_s else math.inf


def rows_per_s(records: Sequence[Record]) -> float:
    """Rows processed a second, at the median over the later half of the batches: the earlier ones warm up."""
    later = records[1 + len(records[1:]) // 2 :]
    return float(np.median([1e3 * batch["rows"] / batch["duration_ms"]["triggerExecution"] for batch in later]))


def _started(records: Sequence[Record], from_s: float, to_s: float) -> list[Record]:
    start_s = records[0]["query_started_s"]
    return [batch for batch in records[1:] if from_s <= batch["started_epoch_s"] - start_s < to_s]


def _spread(oldest_s: float, newest_s: float) -> FloatArray:
    return np.linspace(oldest_s, newest_s, _SAMPLES)


def _weighted_quantile(values: FloatArray, weights: FloatArray, quantile: float) -> float:
    if not len(values):
        return math.nan
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) >= quantile * weights.sum()
    return float(values[order][np.argmax(reached)])
