"""Ours alone: one live run on Spark, three outputs of different tolerance under three times the load that fits.

The road map and Input-Uniform get the same rides, the same latency bound and the same controller; what differs is where
rows are dropped. Needs Java; nothing else in this package does.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jettison.lab.demo.capacity import saturated
from jettison.lab.demo.feed import RideFeed
from jettison.lab.demo.landing import SPARK_SCHEMA, land_all
from jettison.lab.demo.pipeline import parsed, raw_rides
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase
from jettison.lab.recorded_session import recorded_session
from jettison.lab.reproduce.claims import Claim, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.sim.network.admission import AdmissionDrop
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.network.qos import LossTolerance, QoS
from jettison.spark.calibrate import BoxCost, calibrate
from jettison.spark.network_query import Network

OVERLOAD = 3.0
_ROAD_MAP, _ADMISSION = "road map", "Input-Uniform"
_SAMPLE_ROWS, _BATCHES, _ROUNDS = 60_000, 4, 2
BOUND_S = 10.0
_GRAPHS = {
    "archive": LossTolerance([(100, 1.0), (10, 0.9), (0, 0.0)], "archive"),
    "fraud": LossTolerance([(100, 1.0), (60, 0.8), (0, 0.0)], "fraud"),
    "alarms": LossTolerance([(100, 1.0), (0, 0.0)], "alarms"),
}
_CHECKS = "sha2(concat(ride_id, zone, dropoff, {n}), 512)"
_ALARM_FARE = 30
_UNSETTLED = 3  # batches that meet the overload before the controller has seen it


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What one shedder made of the overload: the share that each output got, and each batch's oldest row's latency."""

    delivered: dict[str, float]
    latencies_s: list[float]

    @property
    def utility(self) -> float:
        """Sum over the outputs, each in [0, 1]."""
        return sum(_GRAPHS[name].at(100.0 * min(1.0, share)) for name, share in self.delivered.items())

    @property
    def settled_s(self) -> list[float]:
        """Latencies once the controller has seen the overload."""
        return self.latencies_s[_UNSETTLED:] or [float("nan")]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Rows a second that the network processes with nothing dropped, as measured and as its boxes' costs foresee it.

    `batch_s` is how long the batches took in which it was measured.
    """

    rows_per_s: float
    batch_s: float
    foreseen_rows_per_s: float
    boxes: dict[str, BoxCost]


class _Count:
    """A sink that counts."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def __call__(self, rows: Any, batch_id: int) -> None:
        self.rows[batch_id] = rows.count()


class _Admitting(Network):
    """A network under admission control."""

    def policy(self, graph: QueryGraph, **settings: Any) -> NetworkDrop:
        return AdmissionDrop(graph, rule=_ADMISSION, **settings)


def build(raw: Any, kind: type[Network] = Network) -> tuple[Network, dict[str, _Count]]:
    """A shared parse and three queries behind it: the tolerant one costs most, the strict one least."""
    network = kind(value="fare")
    rides = network.input("rides", raw, row_id=["partition", "offset"], arrival="timestamp")
    parse = network.map("parse", rides, lambda rows: parsed(rows, "partition", "offset", "jt_weight"))
    branches = {
        "archive": network.map("enrich", parse, lambda rows: _hashed(rows, 12)),
        "fraud": network.map("score", parse, lambda rows: _hashed(rows, 6)),
        "alarms": network.filter("expensive", parse, f"fare > {_ALARM_FARE}"),
    }
    sinks = {name: _Count() for name in branches}
    for name, stream in branches.items():
        network.output(name, stream, sinks[name], qos=QoS(_GRAPHS[name]))
    return network, sinks


def _hashed(rows: Any, times: int) -> Any:
    """Work that no optimizer removes, because the rows depend on its outcome."""
    for n in range(times):
        rows = rows.where(f"{_CHECKS.format(n=repr(str(n)))} > '!'")
    return rows


def measure_capacity(spark: Any, folder: Path) -> Capacity:
    """Calibrate the boxes on a sample, then run the network with nothing dropped, warm, in batches of half the bound.

    A row that just missed a batch waits for it and then for its own, so these are the longest batches that meet the bound.
    Their length matters, because each pays a fixed cost: in short ones less would seem to fit than does. So each round's
    speed sets the size of the next one's batches, and the last round counts.
    """
    land_all(folder / "sample", _SAMPLE_ROWS, rows_per_file=_SAMPLE_ROWS)
    network, _ = build(raw_rides(spark, folder / "sample"))
    boxes = calibrate(network, {"rides": spark.read.schema(SPARK_SCHEMA).parquet(str(folder / "sample"))})
    speed, batch_s = _throughput(spark, folder / "warm-up", _SAMPLE_ROWS)
    for number in range(_ROUNDS):
        speed, batch_s = _throughput(spark, folder / f"round{number}", int(speed * BOUND_S / 2))
    return Capacity(speed, batch_s, 1e6 / network.graph.load_coefficients["rides"], boxes)


def _throughput(spark: Any, folder: Path, batch_rows: int) -> tuple[float, float]:
    """Rows a second in batches of so many rows, and seconds a batch, both at the median of the batches after the first."""

    def run(raw: Any) -> Any:
        network, _ = build(raw)
        query = network.start(latency="1 hour", checkpoint=folder / "checkpoint", available_now=True)
        query.awaitTermination()
        assert network.shedder is not None
        network.shedder.await_books()
        return query

    batches = saturated(spark, folder, batch_rows, _BATCHES, run)
    shutil.rmtree(folder / "in")
    rows_per_s = statistics.median(rows / seconds for rows, seconds in batches[1:])
    return rows_per_s, statistics.median(seconds for _, seconds in batches[1:])


def overload(spark: Any, folder: Path, capacity: Capacity, seconds: float, kind: type[Network], seed: int) -> LiveRun:
    """Feed three times the capacity for some seconds under one shedder, then count what was delivered of it."""
    network, sinks = build(raw_rides(spark, folder / "in"), kind)
    network.update({name: (box.cost_us, box.selectivity) for name, box in capacity.boxes.items()})
    query = network.start(latency=BOUND_S, checkpoint=folder / "checkpoint")
    try:
        with RideFeed(folder / "in", [Phase(seconds, OVERLOAD * capacity.rows_per_s)], seed=seed) as feed:
            feed.wait()
        deadline = time.monotonic() + 60.0
        while query.isActive and time.monotonic() < deadline and query.status["isTriggerActive"]:
            time.sleep(0.2)
        query.processAllAvailable()
    finally:
        query.stop()
    assert network.shedder is not None
    network.shedder.await_books()
    rows = feed.schedule.rows
    wanted = {"archive": rows, "fraud": rows, "alarms": _alarming_rides(feed.landing.book, rows)}
    records = sorted(network.shedder.ledger.records("batch"), key=lambda record: record["batch_id"])
    return LiveRun(
        {name: sum(sink.rows.values()) / max(wanted[name], 1) for name, sink in sinks.items()},
        [record["latency_s"] for record in records if record["latency_s"] is not None],
    )


def _alarming_rides(book: RideBook, rows: int) -> int:
    """How many of the first rows of a feed cost more than the alarms' threshold; the feed goes round the book."""
    return int(np.resize(book.fare_cents > 100 * _ALARM_FARE, rows).sum())


def run(settings: RunSettings) -> Judged:
    """Measure the capacity, then both shedders under the same overload."""
    seconds = 40.0 if settings.quick else 90.0
    with (
        tempfile.TemporaryDirectory(prefix="jettison-aurora-") as scratch,
        recorded_session("jettison-aurora") as spark,
    ):
        settings.say("live: capacity")
        capacity = measure_capacity(spark, Path(scratch) / "capacity")
        runs = {}
        for name, kind in ((_ROAD_MAP, Network), (_ADMISSION, _Admitting)):
            settings.say(f"live: {name}, {OVERLOAD:g} times {capacity.rows_per_s:,.0f} rows/s for {seconds:g} s")
            folder = Path(scratch) / name.replace(" ", "-")
            runs[name] = overload(spark, folder, capacity, seconds, kind, settings.seed)
            shutil.rmtree(folder)  # some gigabytes
    config: dict[str, object] = {
        "rows_per_s": round(OVERLOAD * capacity.rows_per_s),
        "capacity_rows_per_s": round(capacity.rows_per_s),
        "capacity_batch_s": round(capacity.batch_s, 2),
        "bound_s": BOUND_S,
        "seconds": seconds,
        "seed": settings.seed,
        "cost_us": {name: round(box.cost_us, 2) for name, box in capacity.boxes.items()},
    }
    return [Section("Live on Spark", _text(capacity, runs))], claims(runs, config)


def claims(runs: Mapping[str, LiveRun], config: dict[str, object]) -> list[Claim]:
    """The road map is worth more, and both runs met the bound under which they are compared."""
    figures = {
        "live-utility": runs[_ROAD_MAP].utility - runs[_ADMISSION].utility,
        "live-latency": max(float(np.percentile(run.settled_s, 95)) for run in runs.values()),
    }
    return judge("aurora", figures, config)


def _text(capacity: Capacity, runs: Mapping[str, LiveRun]) -> str:
    rows = [
        [
            name,
            *(f"{share:.1%}" for share in run.delivered.values()),
            run.utility,
            len(run.latencies_s),
            statistics.median(run.settled_s),
            float(np.percentile(run.settled_s, 95)),
            max(run.latencies_s, default=float("nan")),
        ]
        for name, run in runs.items()
    ]
    header = [
        "shedder",
        *(f"{name} delivered" for name in _GRAPHS),
        "utility of 3",
        "batches",
        "oldest row, median [s]",
        "95 % of batches [s]",
        f"worst, the first {_UNSETTLED} batches included [s]",
    ]
    boxes = [
        [name, f"{box.cost_us:.2f}", f"{box.selectivity:.3f}", f"{box.spread:.0%}"]
        for name, box in capacity.boxes.items()
    ]
    kept = runs[_ADMISSION].delivered["archive"]
    return (
        f"{table(header, rows)}\n\n{OVERLOAD * capacity.rows_per_s:,.0f} rows/s came, {OVERLOAD:g} times what the network "
        f"processes in batches of {capacity.batch_s:.1f} s with nothing dropped. Input-Uniform, which thins all rows alike, "
        f"kept one in {1.0 / kept if kept > 0 else float('inf'):.1f}.\n\n"
        "What the boxes were found to cost, on all cores together:\n\n"
        + table(["box", "microseconds per row", "selectivity", "spread of the runs"], boxes)
        + f"\n\nTogether these foresee {capacity.foreseen_rows_per_s:,.0f} rows/s; {capacity.rows_per_s:,.0f} were measured "
        "in the running query. Calibration runs every box alone, without source, exchange, sinks and the fixed cost of a "
        "batch."
    )
