"""Carries the current plan into every micro-batch of a running query.

A one-row DataFrame over the plan file is joined to the stream: Spark reads it again for every micro-batch, so the plan
changes without a restart, at the cost of one tiny job a batch, and all tasks of a batch see the same version. Which of
the plans on file it takes depends on the batch's own time, which Spark keeps in its offset log: a batch that is repeated
after a crash runs under the plan that it had. (In a scalar subquery the time would be that of the attempt.) The read
itself observes which version it took, off the row path, so that progress events tell it.

Where a replacement fails those who are reading, as on an object store, there are two files, replaced in turn: one of them
is always whole. The older one says of a batch what the newer one does, because no plan counts before it was written.

Whatever is wrong with the file (missing, damaged, too long, expired), the plan comes out null, and the guard reads null
as "keep everything".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.core.plan import MOST_PLAN_BYTES, PLAN_BYTES, DropPlan
from jettison.core.storage import Folder, was_used
from jettison.errors import DamagedPlan, PlanTooLarge, Unsupported, refuse
from jettison.runtime import plan_file
from jettison.runtime.schedule import EVERYWHERE, NOWHERE, Schedule
from jettison.spark.drop_point import LOOK_EVERY, NOW_US, PLAN, VERSION
from jettison.spark.mechanisms import Mechanism

log = logging.getLogger("jettison")

_TO_THE_END = 2**31 - 1


class Channel:
    """Publishes plans to a file and reads them back natively inside the query.

    Parameters
    ----------
    folder
        Where the plan lies; driver and executors must both reach it.
    lease_s
        How long a published plan counts unless it is published again.
    size
        Bytes that one plan should be able to take, until `room` is asked for more. The file has room for some plans.
    """

    def __init__(self, folder: Folder, *, lease_s: float, size: int = PLAN_BYTES) -> None:
        self.lease_s = lease_s
        self.look_every = plan_file.MOST_OFTEN
        self._folder = folder
        self._files = (plan_file.PLAN_FILE,) if folder.keeps_readers else (plan_file.PLAN_FILE, plan_file.SECOND_FILE)
        self._writings = 0
        self.plan_bytes = 0
        self.room(size)
        self.damage: str | None = None
        """What was wrong with the file that `prepare` found, if anything."""

    @property
    def uri(self) -> str:
        """Where the plan lies."""
        return f"{self._folder.uri}/{plan_file.PLAN_FILE}"

    def room(self, wanted: int) -> int:
        """Bytes that one plan may take: as many as were wanted at any time, up to `MOST_PLAN_BYTES`."""
        self.plan_bytes = max(self.plan_bytes, min(wanted, MOST_PLAN_BYTES))
        return self.plan_bytes

    @property
    def _size(self) -> int:
        return plan_file.PLANS_ON_FILE * self.plan_bytes

    def publish(self, schedule: Schedule, valid_until_us: int | None = None) -> None:
        """Replace what is on file. Raises `PlanTooLarge` and leaves it as it was if the new schedule does not fit.

        The lease is the usual one, from now on, unless told otherwise.
        """
        if valid_until_us is None:
            valid_until_us = int((time.time() + self.lease_s) * 1e6)
        content = self._encoded(schedule, valid_until_us, self._size)
        self._folder.replace(self._files[self._writings % len(self._files)], content)
        self._writings += 1

    def _encoded(self, schedule: Schedule, valid_until_us: int, size: int) -> bytes:
        plan_file.encode(Schedule.of(schedule.newest), valid_until_us=0, size=self.plan_bytes)
        return plan_file.encode(
            schedule, valid_until_us=valid_until_us, size=size, look_every=self.look_every, writing=self._writings
        )

    def fits(self, schedule: Schedule) -> bool:
        """Whether a schedule can be published, with a sixteenth of the file to spare."""
        try:
            self._encoded(schedule, 0, self._size - self._size // 16)
        except PlanTooLarge:
            return False
        return True

    def prepare(self) -> None:
        """Make sure that a file is there, because Spark lists the files when the query is built.

        What is on file stays, unless it is damaged, and plans may be as long as the longest one there. Where it is lost
        after an earlier run, nobody knows any more in which answers rows are missing, so all are in doubt. Of two files one
        that is damaged counts as both: a batch may be repeated whose plan stood only there, and it keeps every row.
        """
        contents, schedule = self._contents(), None
        try:
            newest = self._newest()
        except DamagedPlan as error:
            newest, self.damage = None, str(error)
        if newest is not None:
            self._writings, self.damage = newest.writing + 1, newest.damage or None
            schedule = None if newest.damage else newest.schedule
            self.room(max(_bytes_of(entry.plan) for entry in newest.schedule.entries))
            # What is on file `fits`, also where that is more than four plans of that length.
            self.room(-(-max(map(len, contents)) * 16 // (15 * plan_file.PLANS_ON_FILE)))
        # Of two files either may be replaced next, so both hold what was published last.
        alike = len(contents) == len(self._files) and len(set(contents)) == 1
        if schedule is not None and alike and self.fits(schedule):
            return
        if schedule is None:
            is_new = not contents and not (self._folder / "ledger").names() and not was_used(self._folder)
            schedule = Schedule.of(DropPlan(0, cause="not started"), NOWHERE if is_new else EVERYWHERE)
        lease_ends_us = self.lease_ends_us()
        for _ in self._files:
            self.publish(schedule, lease_ends_us)  # what has run out stays so

    def published(self) -> Schedule | None:
        """The schedule on file, or `None` where there is none; raises `DamagedPlan` where it cannot be read."""
        newest = self._newest()
        return None if newest is None else newest.schedule

    def lease_ends_us(self) -> int | None:
        """When the lease on file ends or has ended; `None` where nothing readable is on file."""
        try:
            newest = self._newest()
        except DamagedPlan:
            return None
        return None if newest is None else newest.valid_until_us

    def _contents(self) -> list[bytes]:
        contents = map(self._folder.read, self._files)
        return [content for content in contents if content is not None]

    def _newest(self) -> plan_file.OnFile | None:
        return plan_file.on_file(self._folder, self._files)

    def read_cost_s(self, spark: SparkSession) -> float:
        """Time of one plan read. Raises `Unsupported` unless Spark reads what this process has written."""
        best = float("inf")
        for _ in range(2):  # the first read pays for compiling the job
            started = time.perf_counter()
            rows = self._files_read(spark).collect()
            best = min(best, time.perf_counter() - started)
        if sorted(bytes(row.content) for row in rows) != sorted(self._contents()):
            refuse(
                "Spark must read the plan that this process writes",
                f"other content through Spark than here for {self.uri!r}",
                hint="put the checkpoint on a filesystem that this process, the driver and the executors share",
                error=Unsupported,
            )
        return best

    def plan_row(self, spark: SparkSession, mechanisms: Mapping[str, Mechanism], *, metric: str) -> DataFrame:
        """One row with the column `jt_plan`, made once a micro-batch; no row where no plan is valid.

        The column holds, under the name of each drop point, a struct of its mechanism's fields, of the batch's time,
        `now_us`, and of one row in how many is looked at, `look_every`. However many drop points join it, all of them see
        one version, because that follows from the batch's time; it and the batch's time appear as `metric` among the
        observed metrics.
        """
        outlives_lease = all(mechanism.outlives_lease for mechanism in mechanisms.values())
        plans = self._parsed(spark, mechanisms).withColumn(NOW_US, _now_us())
        entry = _last(F.filter("plans", lambda entry: entry["from_us"] <= F.col(NOW_US)))
        # Decisions that cannot be taken back hold even when nobody renews them; they end by themselves.
        entry = entry if outlives_lease else F.when(F.col(NOW_US) < F.col("valid_until_us"), entry)
        chosen = plans.select(entry.alias("entry"), NOW_US, LOOK_EVERY)
        observed = chosen.observe(metric, F.max("entry.version").alias(VERSION), F.max(NOW_US).alias(NOW_US))
        return observed.where("entry is not null").select(_fields_by_point(mechanisms).alias(PLAN))

    def newest_plan(self, spark: SparkSession, point: str, mechanism: Mechanism) -> Column:
        """A struct of the mechanism's fields in the newest plan on file, as a scalar subquery; null where none is readable.

        For what is decided once and for all, and may be looked up by an answer whenever it is made.
        """
        newest = self._parsed(spark, {point: mechanism}).select(
            _last(F.col("plans")).alias("entry"), _now_us().alias(NOW_US), LOOK_EVERY
        )
        return newest.select(_fields_by_point({point: mechanism})[point]).scalar()

    def doubts(self, spark: SparkSession) -> DataFrame:
        """`Doubts.text`, as a row of one column; no row where it is not readable."""
        return self._parsed(spark, {}).select("doubts")

    def _parsed(self, spark: SparkSession, mechanisms: Mapping[str, Mechanism]) -> DataFrame:
        """What is on file, as one row; no row where it is not readable."""
        points = ", ".join(f"`{point}`: {mechanism.schema}" for point, mechanism in mechanisms.items())
        plans = (
            f"plans array<struct<from_us: bigint, version: bigint, points: struct<{points}>>>, " if mechanisms else ""
        )
        body = F.from_json(_from(plan_file.BODY_START).cast("string"), f"{plans}doubts string")
        lease = _number(plan_file.VALID_UNTIL_US).alias("valid_until_us")
        look_every = _number(plan_file.LOOK_EVERY).alias(LOOK_EVERY)
        parsed = self._newest_content(spark).select(body.alias("body"), lease, look_every)
        return parsed.select("body.*", "valid_until_us", LOOK_EVERY)

    def _newest_content(self, spark: SparkSession) -> DataFrame:
        """What was published last, or just before that; no row where nothing whole is on file."""
        whole = self._files_read(spark).where(_whole())
        if len(self._files) == 1:
            return whole
        # One task needs no exchange.
        last = F.max_by("content", _number(plan_file.WRITING)).alias("content")
        return whole.coalesce(1).agg(last).where("content is not null")

    def _files_read(self, spark: SparkSession) -> DataFrame:
        """The files' bytes, a row each. As text they would take ten times as long, and end where they ended at the start."""
        reader = spark.read.option("ignoreMissingFiles", True).option("ignoreCorruptFiles", True)
        paths = [f"{self._folder.glob_escaped}/{name}" for name in self._files]
        # A forged file of any size is not read at all: Spark looks at the length first. Room may grow once this is compiled.
        most = plan_file.PLANS_ON_FILE * MOST_PLAN_BYTES
        return reader.format("binaryFile").load(paths).where(F.col("length") <= most).select("content")


def _bytes_of(plan: DropPlan) -> int:
    return len(plan_file.encode(Schedule.of(plan), valid_until_us=0, size=_TO_THE_END))


def _fields_by_point(mechanisms: Mapping[str, Mechanism]) -> Column:
    def fields(point: str, mechanism: Mechanism) -> Column:
        made = mechanism.plan_fields(F.col("entry")["points"][point], F.col(NOW_US))
        return F.struct(NOW_US, LOOK_EVERY, *[column.alias(name) for name, column in made.items()])

    return F.struct(*[fields(point, mechanism).alias(point) for point, mechanism in mechanisms.items()])


def _last(entries: Column) -> Column:
    """The last of some plans; null where there is none."""
    return F.try_element_at(entries, F.lit(-1))


def _whole() -> Column:
    """Whether the plan file is undamaged."""
    return F.crc32(_from(plan_file.CHECKED_START)) == _number(plan_file.CHECKSUM)


def _now_us() -> Column:
    """The batch's time in microseconds, the same whenever the batch is repeated.

    Spark writes numbers into the code that it generates, so that code with the time in it is compiled again in every
    micro-batch, which takes longer than to read the plan. To `zip_with`, which it has no code for, it only refers.
    """
    one = F.array(F.lit(0))
    return F.get(F.zip_with(one, one, lambda _, __: F.unix_micros(F.current_timestamp())), F.lit(0))


def _from(start: int, length: int = _TO_THE_END) -> Column:
    """Bytes of the file."""
    return F.substring("content", F.lit(start + 1), F.lit(length))


def _number(place: slice) -> Column:
    return _from(place.start, place.stop - place.start).cast("string").try_cast("bigint")


def version_read(observed: Mapping[str, Any], metric: str) -> int | None:
    """Version of the plan that a micro-batch ran under, from its observed metrics; `None` if it read no valid plan.

    Version 0 stands for none: nobody had made a plan yet, or the lease had run out when the batch was first tried.
    """
    row = observed.get(metric)
    return int(row[VERSION]) if row is not None and row[VERSION] else None
