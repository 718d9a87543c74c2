"""The demo's taxi stream: a process of its own that lands rides on schedule, however the reader does.

An overload experiment is only honest if arrivals are open loop: rows come when they come, and a slow reader finds
more of them, not fewer. So the feed shares nothing with Spark but the directory.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from jettison.demo.landing import Lander, Landing, landed_files, refuse_used
from jettison.demo.rides import RideBook
from jettison.demo.schedule import Phase, Schedule
from jettison.errors import JettisonError, explain

_LEAD_S = 0.05
_LONGEST_NAP_S = 0.2
_READY = "ready"


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What the feeding process says of itself at its end.

    Parameters
    ----------
    rows, files
        Landed in all.
    cpu_s
        CPU time spent on landing them, start-up not counted.
    worst_late_s
        Longest time that a file landed after it was due.
    """

    rows: int
    files: int
    cpu_s: float
    worst_late_s: float


class RideFeed:
    """Lands taxi rides on schedule from another process; late processing never slows arrival.

    A file lands every `interval_s`. When one is late, the next follow without pause until the schedule is met again, and
    every row keeps its scheduled arrival. The process ends with the schedule, with `stop`, or with the process that
    started it, whichever comes first.

    Parameters
    ----------
    directory
        An empty or missing directory, for Spark to read with `landing.SPARK_SCHEMA`.
    phases
        How long rows arrive at which rate, in order.
    interval_s
        Time between files.
    seed
        Equal seeds and phases give equal rides, but for the arrival timestamps.
    event_speed
        Seconds that the rides' own clock advances per second.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with RideFeed(directory, [Phase(0.3, 10_000)]) as feed:
    ...         report = feed.wait()
    >>> report.rows, report.files
    (3000, 3)
    """

    _child = "from jettison.demo.feed import main; main()"

    def __init__(
        self,
        directory: str | Path,
        phases: Sequence[Phase],
        *,
        interval_s: float = 0.1,
        seed: int = 7,
        event_speed: float = 1.0,
    ) -> None:
        self.directory = Path(directory)
        self.schedule = Schedule.from_phases(phases, interval_s=interval_s, event_speed=event_speed)
        self._seed = seed
        self._process: subprocess.Popen[str] | None = None
        self._landing: Landing | None = None
        self._report: FeedReport | None = None

    def start(self) -> RideFeed:
        """Start the process and return once the schedule runs; `started_s` says since when."""
        if self._process is not None:
            hint = "make a new `RideFeed` for another run"
            raise JettisonError(explain("a feed runs once", "one that was started before", hint=hint))
        where = self._prepare()
        self._process = _spawn(self._child)
        self._tell(json.dumps({**where, "seed": self._seed, "schedule": self.schedule.to_dict()}))
        if self._hear() != _READY:
            raise self._failure()
        started_us = time.time_ns() // 1000 + round(_LEAD_S * 1e6)
        self._landing = Landing(self.schedule, RideBook(self._seed), started_us)
        self._tell(str(started_us))
        return self

    def _prepare(self) -> dict[str, str]:
        """Make the place where rides land, and return what the process must know of it."""
        refuse_used(self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        return {"directory": str(self.directory.absolute())}

    def stop(self) -> None:
        """End the feed after the file at hand, if it still runs; no process is left."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        # The other side reads the end of its input as the order to end.
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait(self, timeout_s: float | None = None) -> FeedReport:
        """Wait until the schedule is through, or the feed stopped, and return the report."""
        if self._report is None:
            process = self._running()
            process.wait(timeout_s)
            line = self._hear()
            if process.returncode != 0 or not line:
                raise self._failure()
            self._report = FeedReport(**json.loads(line))
        return self._report

    @property
    def landing(self) -> Landing:
        """What lands and when; known from the start on."""
        if self._landing is None:
            raise _not_started()
        return self._landing

    @property
    def started_s(self) -> float:
        """When the schedule started, in seconds since the Unix epoch."""
        return self.landing.started_us / 1e6

    def landed_rows(self) -> int:
        """Rows that a reader could have seen by now."""
        return self.schedule.rows_before[landed_files(self.directory)]

    def __enter__(self) -> RideFeed:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise _not_started()
        return self._process

    def _tell(self, line: str) -> None:
        stdin = self._running().stdin
        assert stdin is not None
        try:
            stdin.write(line + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def _hear(self) -> str:
        stdout = self._running().stdout
        assert stdout is not None
        return stdout.readline().strip()

    def _failure(self) -> JettisonError:
        self.stop()
        code = self._running().returncode
        return JettisonError(
            explain("the feed's process must end well", f"exit code {code}", hint="its own message stands above")
        )


def _not_started() -> JettisonError:
    return JettisonError(explain("a feed that runs", "one that was not started", hint="call `start` first"))


def _spawn(program: str) -> subprocess.Popen[str]:
    # One thread is enough, and idle pools of others would only get in Spark's way.
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )


class Lands(Protocol):
    """Somewhere for rides to land."""

    def land(self, file: int) -> int:
        """Land the rows of one file of the schedule and return how many."""
        ...


def main() -> None:
    """Feed files to a directory, in the process that `RideFeed` starts."""
    serve(lambda order, landing: Lander(Path(order["directory"]), landing))


def serve(lander: Callable[[dict[str, Any], Landing], Lands]) -> None:
    """Feed: the order and then the start come as lines on standard input, whose end means to stop."""
    # Ctrl-C goes to all processes of a terminal; the parent decides what it means here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    schedule, book = Schedule.from_dict(order["schedule"]), RideBook(order["seed"])
    _ = book.text
    print(_READY, flush=True)
    start = sys.stdin.readline()
    if start:
        landing = Landing(schedule, book, int(start))
        report = _feed(lander(order, landing), landing, parent)
        print(json.dumps(asdict(report)), flush=True)


def _feed(lander: Lands, landing: Landing, parent: int) -> FeedReport:
    rows = files = 0
    worst_late_s, cpu_before_s = 0.0, time.process_time()
    for file in range(landing.schedule.files):
        due_s = (landing.started_us + landing.schedule.due_us(file)) / 1e6
        if not _sleep_until(due_s, parent):
            break
        landed = lander.land(file)
        rows, files = rows + landed, files + (landed > 0)
        worst_late_s = max(worst_late_s, time.time() - due_s)
    return FeedReport(rows, files, time.process_time() - cpu_before_s, worst_late_s)


def _sleep_until(due_s: float, parent: int) -> bool:
    """Sleep, not at all if it is late already, and return whether to go on.

    The end of standard input tells that the parent stopped the feed or is gone. A process that the parent forked may hold
    the other end open, so the parent's id is looked at as well.
    """
    while True:
        left_s = max(0.0, due_s - time.time())
        ended, _, _ = select.select([sys.stdin], [], [], min(left_s, _LONGEST_NAP_S))
        if ended or os.getppid() != parent:
            return False
        if left_s <= _LONGEST_NAP_S:
            return True


if __name__ == "__main__":
    main()
