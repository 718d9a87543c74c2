"""The demo's taxi stream: a process of its own that lands rides on schedule, however the reader does.

An overload experiment is only honest if arrivals are open loop: rows come when they come, and a slow reader finds
more of them, not fewer. So the feed shares nothing with Spark but the place where rides land.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from jettison.errors import JettisonError, refuse
from jettison.lab.demo.landing import Lander, Landing, refuse_used
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase, Schedule

_LEAD_S, _LONGEST_NAP_S, _PATIENCE_S = 0.05, 0.2, 10.0
_READY, _STOP = "ready", "stop"


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What the feeding process says of itself at its end.

    Parameters
    ----------
    rows, files
        Landed in all.
    worst_late_s
        Longest time that a file landed after it was due.
    """

    rows: int
    files: int
    worst_late_s: float


class Lands(Protocol):
    """Somewhere for rides to land."""

    def land(self, file: int) -> int:
        """Land the rows of one file of the schedule and return how many."""


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

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with RideFeed(directory, [Phase(0.3, 10_000)]) as feed:
    ...         report = feed.wait()
    >>> report.rows, report.files
    (3000, 3)
    """

    has_texts = False
    """Whether what lands is there already, and the book of rides need not be made."""

    def __init__(
        self, directory: str | Path, phases: Sequence[Phase], *, interval_s: float = 0.1, seed: int = 7
    ) -> None:
        self.phases = tuple(phases)
        self.schedule = Schedule.from_phases(phases, interval_s=interval_s)
        self._directory, self._seed = Path(directory), seed
        self._process: SpawnProcess | None = None
        self._channel: Connection | None = None
        self._landing: Landing | None = None
        self._report: FeedReport | None = None

    def start(self) -> RideFeed:
        """Start the process and return once the schedule runs; `started_s` says since when."""
        if self._process is not None:
            hint = "make a new feed for another run"
            refuse("a feed runs once", "one that was started before", hint=hint, error=JettisonError)
        context = multiprocessing.get_context("spawn")
        self._channel, theirs = context.Pipe()
        arguments = (theirs, self._lander(), self.schedule, self._seed, self.has_texts)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._hear()
        started_us = time.time_ns() // 1000 + round(_LEAD_S * 1e6)
        self._landing = Landing(self.schedule, RideBook(self._seed), started_us)
        self._channel.send(started_us)
        return self

    def _lander(self) -> Callable[[Landing], Lands]:
        """Make the place where rides land, and return what makes the lander in the feeding process."""
        refuse_used(self._directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        return partial(Lander, self._directory.absolute())

    def stop(self) -> None:
        """End the feed after the file at hand, if it still runs; no process is left."""
        if self._process is None or self._channel is None:
            return
        with suppress(OSError):  # it may have ended
            self._channel.send(_STOP)
        self._process.join(_PATIENCE_S)
        self._process.kill()
        self._process.join()

    def wait(self) -> FeedReport:
        """Wait until the schedule is through, or the feed stopped, and return the report."""
        if self._report is None:
            self._report = self._hear()
            self.stop()
        return self._report

    @property
    def landing(self) -> Landing:
        """What lands and when; known from the start on."""
        if self._landing is None:
            refuse("a feed that runs", "one that was not started", hint="call `start` first", error=JettisonError)
        return self._landing

    @property
    def started_s(self) -> float:
        """When the schedule started, in seconds since the Unix epoch."""
        return self.landing.started_us / 1e6

    def __enter__(self) -> RideFeed:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _hear(self) -> Any:
        if self._channel is None or self._process is None:
            refuse("a feed that runs", "one that was not started", hint="call `start` first", error=JettisonError)
        try:
            return self._channel.recv()
        except (EOFError, ConnectionError):
            self.stop()
            code, hint = self._process.exitcode, "its own message stands above"
            refuse("the feed's process must end well", f"exit code {code}", hint=hint, error=JettisonError)


def _serve(
    channel: Connection, lander: Callable[[Landing], Lands], schedule: Schedule, seed: int, has_texts: bool
) -> None:
    """Feed, in a process of its own: the start comes through the channel, and anything after it means to stop."""
    # Ctrl-C goes to all processes of a terminal; the parent decides what it means here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, book = os.getppid(), RideBook(seed)
    if not has_texts:
        _ = book.text
    channel.send(_READY)
    try:
        landing = Landing(schedule, book, channel.recv())
    except EOFError:
        return  # the parent is gone
    report = _feed(lander(landing), landing, lambda nap_s: channel.poll(nap_s) or os.getppid() != parent)
    if os.getppid() == parent:
        channel.send(report)


def _feed(lander: Lands, landing: Landing, stopped_within: Callable[[float], bool]) -> FeedReport:
    rows = files = 0
    worst_late_s = 0.0
    for file in range(landing.schedule.files):
        due_s = (landing.started_us + landing.schedule.due_us(file)) / 1e6
        while True:
            left_s = max(0.0, due_s - time.time())
            if stopped_within(min(left_s, _LONGEST_NAP_S)):
                return FeedReport(rows, files, worst_late_s)
            if left_s <= _LONGEST_NAP_S:
                break
        landed = lander.land(file)
        rows, files = rows + landed, files + (landed > 0)
        worst_late_s = max(worst_late_s, time.time() - due_s)
    return FeedReport(rows, files, worst_late_s)
