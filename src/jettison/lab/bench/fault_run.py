"""Runs a scenario: legs in drivers that may be killed, with damage in between, and all that came out of them."""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from jettison.lab.bench import fault_rows
from jettison.lab.bench.fault_damage import damage
from jettison.lab.bench.fault_rows import Row
from jettison.lab.bench.fault_scenario import (
    BROKER_PAUSED,
    BROKER_RESTARTED,
    INTERRUPTED,
    KILLED,
    KILLED_AT_START,
    PLAN,
    PLAN_AT_WORK,
    Leg,
    Scenario,
)
from jettison.lab.bench.fault_topic import Topic
from jettison.lab.bench.kafka import Broker
from jettison.lab.bench.maven_jars import CONNECTOR, jars

ENDED, DIED, HUNG = "ended", "died", "hung"
_LEG_WITHIN_S = 180.0
_PAUSE_S = 3.0
_LOCAL, _CLUSTER = "local[2]", "local-cluster[2,1,1024]"
# Drivers live for a minute: the first compiler alone takes half as much CPU as both.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"


_OUTCOME_OF = {KILLED: DIED, KILLED_AT_START: DIED, INTERRUPTED: INTERRUPTED}
"""How a leg ends to which this has happened."""


@dataclass
class Evidence:
    """What a run left: its rows by file, what each attempt at a batch brought, how each leg ended, and what befell it."""

    scenario: Scenario
    checkpoint: Path
    files: list[list[Row]]
    attempts: dict[int, list[list[Any]]] = field(default_factory=dict)
    outcomes: list[str] = field(default_factory=list)
    said: str = ""
    happened: set[str] = field(default_factory=set)

    @property
    def loses_plans(self) -> bool:
        """Whether a batch may have found no readable plan: it then keeps every row."""
        return bool({PLAN, PLAN_AT_WORK} & self.happened)


class Driver:
    """A process of its own group that runs legs."""

    def __init__(self, folder: Path, jar_paths: str, master: str = _LOCAL) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log, self._heard = folder / "log", 0
        environment = os.environ | {
            "SPARK_LOCAL_DIRS": str(folder),
            "TMPDIR": str(folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(spark_home(folder)),
        }
        environment.setdefault("JDK_JAVA_OPTIONS", f"{_BRIEF} -Djava.io.tmpdir={folder}")
        command = [sys.executable, "-m", "jettison.lab.bench.fault_driver", master, jar_paths]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):  # else it was killed in the middle of it
                    self._lines.put(json.loads(line))
        self._process.wait()
        self._lines.put({"outcome": DIED})

    def told(self, order: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """What it says to an order, up to how that ended; one that says nothing for long is killed."""
        if order is not None:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.write((json.dumps(order) + "\n").encode())
                self._process.stdin.flush()
        while True:
            try:
                line = self._lines.get(timeout=_LEG_WITHIN_S)
            except queue.Empty:
                self.kill()
                line = {"outcome": HUNG}
            yield line
            if "outcome" in line:
                return

    def kill(self) -> None:
        """End it and its JVM."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # what it was told last, it may never have read
            self._process.stdin.close()

    def new_words(self) -> str:
        """What it wrote as errors since this was asked last."""
        said = self._log.read_text(errors="replace")
        new, self._heard = said[self._heard :], len(said)
        return new


def spark_home(folder: Path) -> Path:
    """Spark as it is installed, in a folder of its own: executors on this machine write below it."""
    home = folder / "spark"
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    return home


class Drivers:
    """A driver that is ready, and the next one, which gets ready meanwhile; one with executors, where it is asked for."""

    def __init__(self, folder: Path, *, with_kafka: bool) -> None:
        self._folder, self._count = folder, 0
        self._jars = ",".join(map(str, jars(CONNECTOR))) if with_kafka else ""
        self._spare = self._new()
        self._current: Driver | None = None
        self._on_cluster = False

    def _new(self, master: str = _LOCAL) -> Driver:
        self._count += 1
        return Driver(self._folder / f"driver-{self._count}", self._jars, master)

    def current(self, *, on_cluster: bool = False) -> Driver:
        """The one that lives, if it is of the kind that is asked for."""
        if on_cluster != self._on_cluster:
            self.lost()
        if self._current is None:
            self._on_cluster = on_cluster
            if on_cluster:
                self._current = self._new(_CLUSTER)
            else:
                self._current, self._spare = self._spare, self._new()
            if list(self._current.told()) != [{"outcome": "ready"}]:
                said = self._current.new_words()[-2000:]
                self.lost()
                raise RuntimeError(f"a driver did not start: {said}")
        return self._current

    def lost(self) -> None:
        """The present one is gone."""
        if self._current is not None:
            self._current.kill()
        self._current = None

    def close(self) -> None:
        """End all of them."""
        self.lost()
        self._spare.kill()


@contextmanager
def drivers(folder: Path, *, with_kafka: bool) -> Iterator[Drivers]:
    """Drivers for as long as the block runs; nothing of them is left afterwards."""
    made = Drivers(folder, with_kafka=with_kafka)
    try:
        yield made
    finally:
        made.close()


def run(scenario: Scenario, folder: Path, drivers: Drivers, broker: Broker | None) -> Evidence:
    """All legs of a scenario. What came last closes all windows, and comes once nothing more goes wrong."""
    chance = random.Random(scenario.seed + 2_000_003)
    evidence = Evidence(scenario, folder / "checkpoint", fault_rows.files(scenario), happened=set(scenario.dirt))
    topic = None
    if scenario.on_kafka:
        assert broker is not None
        topic = Topic(broker.address, f"faults-{scenario.seed}")
    for number, leg in enumerate(scenario.legs):
        landed = evidence.files[:-1] if number == 0 else []
        if leg is scenario.legs[-1]:
            landed = [*landed, evidence.files[-1]]
        if topic is None:
            fault_rows.land(folder / "in", len(evidence.files) - len(landed) if number else 0, landed)
        elif landed:
            topic.append([row.line.encode() for rows in landed for row in rows])
        order = {
            **asdict(leg),
            "number": number,
            "folder": str(folder),
            "policy": scenario.policy,
            "answers": scenario.answers,
            "topic": None if topic is None else topic.options(len(evidence.files[0])),
        }
        evidence.outcomes.append(_leg(leg, order, evidence, drivers, broker, chance))
        evidence.happened |= {kind for kind in leg.after if damage(evidence.checkpoint, kind, chance)}
    return evidence


def _leg(
    leg: Leg, order: dict[str, Any], evidence: Evidence, drivers: Drivers, broker: Broker | None, chance: random.Random
) -> str:
    driver, calls, outcome = drivers.current(on_cluster=evidence.scenario.on_cluster), 0, DIED
    for line in driver.told(order):
        if "outcome" in line:
            outcome = line["outcome"]
            continue
        if "happened" in line:
            evidence.happened.add(line["happened"])
            continue
        evidence.attempts.setdefault(line["batch"], []).append(line["items"])
        calls += 1
        if calls == 1 and PLAN_AT_WORK in leg.during and damage(evidence.checkpoint, PLAN_AT_WORK, chance):
            evidence.happened.add(PLAN_AT_WORK)
        if calls == 1 and broker is not None and BROKER_PAUSED in leg.during:
            broker.pause()
            time.sleep(_PAUSE_S)
            broker.resume()
            evidence.happened.add(BROKER_PAUSED)
        if calls == 1 and broker is not None and BROKER_RESTARTED in leg.during:
            broker.restart()
            evidence.happened.add(BROKER_RESTARTED)
    evidence.said += driver.new_words()
    if outcome in (DIED, HUNG):
        drivers.lost()
    if outcome == _OUTCOME_OF.get(leg.end) and not (leg.end == KILLED_AT_START and calls):
        evidence.happened.add(leg.end)
    return outcome


def as_ordered(leg: Leg, outcome: str) -> bool:
    """Whether a leg ended as it should; one that ended before its call of the sink has done so too."""
    allowed = {KILLED: (DIED, ENDED), KILLED_AT_START: (DIED,), INTERRUPTED: (INTERRUPTED, ENDED)}
    return outcome in allowed.get(leg.end, (ENDED,))
