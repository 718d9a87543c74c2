"""Carries the current plan into every micro-batch of a running query.

A one-row DataFrame over the plan file, used as a scalar subquery, is evaluated anew for every micro-batch: the plan
changes without a restart, at the cost of one tiny job a batch, and all tasks of a batch see the same version. The
subquery itself observes which version it read, off the row path, so that progress events tell it.

Whatever is wrong with the file (missing, damaged, too long, expired), the subquery's fields come out null, and the
guard reads null as "keep everything".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison import plan_file
from jettison.errors import Unsupported, explain
from jettison.plan import DropPlan
from jettison.spark.mechanisms import Mechanism
from jettison.storage import Folder

PLAN_FILE = "plan"


class Channel:
    """Publishes plans to a file and reads them back natively inside the query.

    Parameters
    ----------
    folder
        Where the plan lies; driver and executors must both reach it.
    lease_s
        How long a published plan is obeyed unless it is published again.
    size
        Fixed size of the file in bytes.
    """

    def __init__(self, folder: Folder, *, lease_s: float, size: int = plan_file.DEFAULT_SIZE) -> None:
        self.lease_s = lease_s
        self._folder = folder
        self._size = size

    def publish(self, plan: DropPlan) -> None:
        """Replace the plan in force. Raises `PlanTooLarge` and leaves the old plan if the new one does not fit."""
        valid_until_us = int((time.time() + self.lease_s) * 1e6)
        self._folder.replace(PLAN_FILE, plan_file.encode(plan, valid_until_us=valid_until_us, size=self._size))

    def prepare(self) -> None:
        """Make sure that a file of the right size is there: Spark looks at its length when the query is built."""
        content = self._folder.read(PLAN_FILE)
        if content is None or len(content) != self._size:
            self.publish(DropPlan(0, cause="not started"))

    def published(self) -> DropPlan | None:
        """The plan on file, or `None` where there is none; raises `DamagedPlan` where it cannot be read."""
        content = self._folder.read(PLAN_FILE)
        return None if content is None else plan_file.decode(content)

    def read_cost_s(self, spark: SparkSession) -> float:
        """Time of one plan read. Raises `Unsupported` unless Spark reads what this process has written."""
        path = f"{self._folder.uri}/{PLAN_FILE}"
        best = float("inf")
        for _ in range(2):  # the first read pays for compiling the job
            started = time.perf_counter()
            rows = self._text(spark).collect()
            best = min(best, time.perf_counter() - started)
        if [row.value.encode() for row in rows] != [self._folder.read(PLAN_FILE)]:
            raise Unsupported(
                explain(
                    "Spark must read the plan that this process writes",
                    f"other content through Spark than here for {path!r}",
                    hint="put the checkpoint on a filesystem that this process, the driver and the executors share",
                )
            )
        return best

    def subquery(self, spark: SparkSession, point: str, mechanism: Mechanism, *, metric: str) -> Column:
        """A struct column with the mechanism's fields, computed once a micro-batch; null where no plan is valid.

        Beside the mechanism's fields stands the batch's time, `now_us`. Equal subqueries are executed once, however often
        they are used. The version that was read and the batch's time appear as `metric` among the observed metrics.
        """
        return self._parsed(spark, {point: mechanism}, metric).select(_fields(point, mechanism)).scalar()

    def common_subquery(self, spark: SparkSession, mechanisms: Mapping[str, Mechanism], *, metric: str) -> Column:
        """The same for several drop points at once: a struct that holds the struct of each under its name.

        However many drop points use it, the plan is read once a micro-batch, so all of them see one version.
        """
        each = [_fields(point, mechanism).alias(point) for point, mechanism in mechanisms.items()]
        return self._parsed(spark, mechanisms, metric).select(F.struct(*each)).scalar()

    def _parsed(self, spark: SparkSession, mechanisms: Mapping[str, Mechanism], metric: str) -> DataFrame:
        """The plan in force and the batch's time, as one row; no row where no plan is valid."""
        version = _part(plan_file.VERSION).try_cast("bigint")
        points = ", ".join(f"`{point}`: {mechanism.schema}" for point, mechanism in mechanisms.items())
        plan = F.from_json(_after(plan_file.BODY_START), f"points struct<{points}>")
        # Decisions that cannot be taken back hold even when nobody renews them; they end by themselves.
        outlives_lease = all(mechanism.outlives_lease for mechanism in mechanisms.values())
        in_force = self._text(spark).where(_whole() if outlives_lease else _whole() & _lease_runs())
        parsed = in_force.select(version.alias("version"), plan.alias("plan"), _now_us().alias("now_us"))
        return parsed.observe(metric, F.max("version").alias("version"), F.max("now_us").alias("now_us"))

    def _text(self, spark: SparkSession) -> DataFrame:
        reader = spark.read.option("wholetext", True).option("ignoreMissingFiles", True)
        return reader.option("ignoreCorruptFiles", True).text(f"{self._folder.uri}/{PLAN_FILE}")


def _fields(point: str, mechanism: Mechanism) -> Column:
    fields = mechanism.plan_fields(F.col("plan")["points"][point], F.col("now_us"))
    return F.struct(F.col("now_us"), *[column.alias(name) for name, column in fields.items()])


def _whole() -> Column:
    """Whether the plan file is undamaged."""
    checksum = _part(plan_file.CHECKSUM).try_cast("bigint")
    return F.crc32(_after(plan_file.CHECKED_START).cast("binary")) == checksum


def _lease_runs() -> Column:
    return _part(plan_file.VALID_UNTIL_US) > _now_text()


def _now_text() -> Column:
    """The batch's time in microseconds, as a text.

    Spark writes numbers into the code that it generates, so that code with the time in it as a number is compiled
    anew in every micro-batch, which takes longer than to read the plan. To texts the code only refers. The file's
    times have as many digits, so that texts compare as the numbers do.
    """
    return F.unix_micros(F.current_timestamp()).cast("string")


def _now_us() -> Column:
    """The same as a number: joined with a part of the row, an empty one, the optimizer does not take it as a constant."""
    return F.concat(_now_text(), F.left(F.col("value"), F.lit(0))).cast("bigint")


def _part(place: slice) -> Column:
    return F.substring(F.col("value"), F.lit(place.start + 1), F.lit(place.stop - place.start))


def _after(start: int) -> Column:
    text = F.rtrim(F.col("value"))
    return F.substring(text, F.lit(start + 1), F.length(text))


def version_read(observed: Mapping[str, Any], metric: str) -> int | None:
    """Version of the plan that a micro-batch ran under, from its observed metrics; `None` if it read no valid plan."""
    row = observed.get(metric)
    return None if row is None or row["version"] is None else int(row["version"])
