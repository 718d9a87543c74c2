"""Ours alone: one live run on Spark, three outputs of different tolerance under three times the load that fits.

The road map and Input-Uniform get the same rides, the same latency bound and the same controller; what differs is where
rows are dropped. Needs Java; nothing else in this package does.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.demo.feed import RideFeed
from jettison.demo.landing import RIDE_SCHEMA, SPARK_SCHEMA, land_all
from jettison.demo.schedule import Phase
from jettison.network.qos import LossTolerance, QoS
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.spark.calibrate import calibrate
from jettison.spark.network import Network
from jettison.spark.session import local_session

OVERLOAD = 3.0
BOUND_S = 10.0
_GRAPHS = {
    "archive": LossTolerance([(100, 1.0), (10, 0.9), (0, 0.0)], "archive"),
    "fraud": LossTolerance([(100, 1.0), (60, 0.8), (0, 0.0)], "fraud"),
    "alarms": LossTolerance([(100, 1.0), (0, 0.0)], "alarms"),
}
_CHECKS = "sha2(concat(ride_id, zone, dropoff, {n}), 512)"


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What one shedder made of the overload."""

    delivered: dict[str, float]
    latency_s: float
    worst_latency_s: float

    @property
    def utility(self) -> float:
        """Sum over the outputs, each in [0, 1]."""
        return sum(_GRAPHS[name].at(100.0 * min(1.0, share)) for name, share in self.delivered.items())


class _Count:
    """A sink that counts."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def __call__(self, rows: Any, batch_id: int) -> None:
        self.rows[batch_id] = rows.count()


def build(raw: Any) -> tuple[Network, dict[str, _Count]]:
    """A shared parse and three queries behind it: the tolerant one costs most, the strict one least."""
    network = Network(value="fare")
    rides = network.input("rides", raw, id=["partition", "offset"], arrival="timestamp")
    kept = "partition", "offset", "jt_weight"
    parsed = network.map(
        "parse", rides, lambda rows: rows.selectExpr(*kept, f"from_json(value, '{RIDE_SCHEMA}') r").select(*kept, "r.*")
    )
    branches = {
        "archive": network.map("enrich", parsed, lambda rows: _hashed(rows, 12)),
        "fraud": network.map("score", parsed, lambda rows: _hashed(rows, 6)),
        "alarms": network.filter("dear", parsed, "fare > 30"),
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


def _open(spark: Any, folder: Path, **options: object) -> Any:
    reader = spark.readStream.schema(SPARK_SCHEMA)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.parquet(str(folder))


def measure_capacity(spark: Any, folder: Path) -> tuple[float, dict[str, Any]]:
    """Rows a second that the network processes with nothing dropped, and what its boxes were found to cost."""
    land_all(folder / "in", 240_000, rows_per_file=15_000)
    network, _ = build(_open(spark, folder / "in", maxFilesPerTrigger=4))
    costs = calibrate(network, {"rides": spark.read.schema(SPARK_SCHEMA).parquet(str(folder / "in")).limit(60_000)})
    query = network.start(latency="1 hour", checkpoint=folder / "checkpoint", trigger={"availableNow": True})
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p.numInputRows][1:]
    rates = [60_000 / (p.durationMs["triggerExecution"] / 1e3) for p in batches]
    return statistics.median(rates), {name: (box.cost_us, box.selectivity) for name, box in costs.items()}


def overload(
    spark: Any, folder: Path, rows_per_s: float, costs: dict[str, Any], seconds: float, admission: str | None
) -> LiveRun:
    """Feed at a rate for some seconds under one shedder, then count what was delivered of what was wanted."""
    (folder / "in").mkdir(parents=True)
    network, sinks = build(_open(spark, folder / "in"))
    network.update(costs)
    query = network.start(latency=BOUND_S, checkpoint=folder / "checkpoint", admission=admission)
    try:
        with RideFeed(folder / "in", [Phase(seconds, rows_per_s)]) as feed:
            feed.wait()
        deadline = time.monotonic() + 60.0
        while query.isActive and time.monotonic() < deadline and query.status["isTriggerActive"]:
            time.sleep(0.2)
        query.processAllAvailable()
    finally:
        query.stop()
    wanted = {"archive": feed.schedule.rows, "fraud": feed.schedule.rows, "alarms": 0}
    truth = spark.read.schema(SPARK_SCHEMA).parquet(str(folder / "in"))
    wanted["alarms"] = truth.selectExpr(f"from_json(value, '{RIDE_SCHEMA}').fare f").where("f > 30").count()
    assert network.shedder is not None
    latencies = sorted(
        record["latency_s"] for record in network.shedder.ledger.records("batch") if record["latency_s"] is not None
    )
    settled = latencies or [float("nan")]
    return LiveRun(
        {name: sum(sink.rows.values()) / max(wanted[name], 1) for name, sink in sinks.items()},
        statistics.median(settled),
        settled[-1],
    )


def run(settings: RunSettings) -> tuple[list[Section], list[Claim]]:
    """Measure the capacity, then both shedders under the same overload."""
    seconds = 40.0 if settings.quick else 120.0
    with tempfile.TemporaryDirectory(prefix="jettison-aurora-") as scratch, local_session("jettison-aurora") as spark:
        settings.say("live: capacity")
        capacity, costs = measure_capacity(spark, Path(scratch) / "capacity")
        runs = {}
        for name, admission in (("road map", None), ("Input-Uniform", "Input-Uniform")):
            settings.say(f"live: {name}, {OVERLOAD:g} times {capacity:,.0f} rows/s for {seconds:g} s")
            folder = Path(scratch) / name.replace(" ", "-")
            runs[name] = overload(spark, folder, OVERLOAD * capacity, costs, seconds, admission)
    config: dict[str, object] = {
        "rows_per_s": round(OVERLOAD * capacity),
        "capacity_rows_per_s": round(capacity),
        "bound_s": BOUND_S,
        "seconds": seconds,
        "cost_us": {name: round(cost, 2) for name, (cost, _) in costs.items()},
    }
    rows = [
        [name, *(f"{share:.1%}" for share in run.delivered.values()), run.utility, run.latency_s, run.worst_latency_s]
        for name, run in runs.items()
    ]
    header = ["shedder", *(f"{name} delivered" for name in _GRAPHS), "utility of 3", "median latency [s]", "worst [s]"]
    claim = Claim(
        "live-utility",
        f"on Spark at {OVERLOAD:g} times the capacity and a bound of {BOUND_S:g} s, the road map's utility exceeds "
        "Input-Uniform's; the difference, of 3",
        paper="",
        ours=runs["road map"].utility - runs["Input-Uniform"].utility,
        at_least=0.0,
        config=config,
    )
    return [Section("Live on Spark", table(header, rows))], [claim]
