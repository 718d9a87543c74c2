"""Parts for tests of the control loop: a controller that is told what to answer, publishers, reports."""

from __future__ import annotations

import logging
import threading

from jettison.control.controller import ControlSettings
from jettison.core.batch_report import BatchReport
from jettison.core.plan import MOST_PLAN_BYTES, PLAN_BYTES
from jettison.core.stats import Budget
from jettison.runtime import plan_file
from jettison.runtime.ledger import Ledger

SETTINGS = ControlSettings(latency_bound_s=3.0)
PATIENCE_S = 120.0


class ScriptedController:
    """Answers with the keep fraction it is told, or raises; what it was asked is kept for the test."""

    def __init__(self, settings):
        self.keep = 1.0
        self.error: Exception | None = None
        self.stepped = []
        self.versions = []
        self.said_of_arrivals = self.said_of_source = ""
        self.decision = self.behind = None

    def initial(self):
        return self._budget("start")

    def step(self, stats):
        self.stepped.append(stats)
        if self.error is not None:
            raise self.error
        return self._budget(f"because of batch {stats.batch_id}")

    def idle(self, now_s):
        if self.error is not None:
            raise self.error
        self.keep = 1.0
        return self._budget("no rows arrive")

    def forecast(self, now_s, *, running, produced=None):
        return self._budget("on the clock")

    def lag(self, now_s):
        return self.behind

    def latency_s(self, stats):
        return stats.worst_latency_s

    def planned(self, version, from_s):
        self.versions.append(version)

    def to_dict(self):
        return {"keep": self.keep}

    @classmethod
    def from_dict(cls, settings, document):
        controller = cls(settings)
        controller.keep = document["keep"]
        return controller

    def _budget(self, cause):
        return Budget(self.keep, self.keep, 3.0, cause)


class FakePublisher:
    """Remembers what was published; fails while `error` is set, or for plans that `refuses` picks.

    A plan that is published again only because answers are judged otherwise is not listed again among `plans`.
    """

    def __init__(self, lease_s=3600.0):
        self.lease_s, self.look_every, self.plan_bytes = lease_s, 16, PLAN_BYTES
        self.plans, self.schedules = [], []
        self.valid_until_us: int | None = None
        self.error: Exception | None = None
        self.refuses = lambda plan: False
        self.before_publish = lambda plan: None
        self._changed = threading.Condition()

    def room(self, wanted):
        self.plan_bytes = max(self.plan_bytes, min(wanted, MOST_PLAN_BYTES))
        return self.plan_bytes

    def publish(self, schedule, valid_until_us=None):
        if self.error is not None:
            raise self.error
        if self.refuses(schedule.newest):
            raise ValueError("this plan is refused")
        before = self.schedules[-1] if self.schedules else None
        only_doubts = before is not None and before.entries == schedule.entries and before.doubts != schedule.doubts
        if not only_doubts:
            self.before_publish(schedule.newest)
        with self._changed:
            if not only_doubts:
                self.plans.append(schedule.newest)
            self.schedules.append(schedule)
            self.valid_until_us = valid_until_us
            self._changed.notify_all()

    def published(self):
        return self.schedules[-1] if self.schedules else None

    def fits(self, schedule):
        return True

    def lease_ends_us(self):
        return self.valid_until_us

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.plans) >= count, timeout=PATIENCE_S)


class FilePublisher(FakePublisher):
    """Writes a real plan file, as the backends do."""

    def __init__(self, folder, size=4096):
        super().__init__()
        self.folder, self.size = folder, size

    def publish(self, schedule, valid_until_us=10**16):
        self.folder.replace("plan", plan_file.encode(schedule, valid_until_us=valid_until_us, size=self.size))
        super().publish(schedule, valid_until_us)

    def published(self):
        content = self.folder.read("plan")
        return None if content is None else plan_file.decode(content)

    def lease_ends_us(self):
        content = self.folder.read("plan")
        return None if content is None else int(content[plan_file.VALID_UNTIL_US])


def report(number=0, rows=10_000, version=1, **changes):
    return BatchReport("run", number, 1e9 + number, 0.5, rows, version, **changes)


def counted(number=0, rows=10_000, kept=None, version=1, **changes):
    """A report that brings its exact counts along."""
    kept = rows if kept is None else kept
    return report(number, rows, version, seen={"rows": rows}, kept={"rows": kept}, **changes)


def shed(pilot, keep, number=0):
    """Bring a plan into force that keeps `keep`."""
    pilot.controller.keep = keep
    pilot.batch(counted(number, version=pilot.plan.version))


def records(folder, kind=None):
    return list(Ledger(folder / "ledger").records(kind))


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "jettison" and r.levelno >= logging.WARNING]


def fly_by(monkeypatch, controller):
    """Have pilots make and restore controllers of this class."""
    monkeypatch.setattr("jettison.runtime.pilot.Controller", controller)
    monkeypatch.setattr("jettison.runtime.restart.Controller", controller)
