"""Window drops on Spark: which window a row belongs to is arithmetic, what became of it one look into an array."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.core.documents import field_types
from jettison.errors import InvalidInput, Unsupported, explain, refuse
from jettison.policies.window.query_fan import Fan
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_marks import DROP, WindowMarks, WindowSpec
from jettison.policies.window.window_needs import Pipeline
from jettison.spark import validate
from jettison.spark.drop_point import PLAN, DropPoint
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.setting_schema import schema_of
from jettison.spark.spark_errors import OTHER_WINDOWS

_SESSION_MARK = "spark.sessionWindow"
_WATERMARK_MARK = "spark.watermarkDelayMs"
_BEFORE_ALL_TIMES_US = 2**57  # added to a timestamp, this makes it positive from the year 1 on


class WindowMechanism(Mechanism):
    """Executes `WindowMarks`: drops a row exactly when every answer that it takes part in is dropped.

    A kept row weighs 1: it stands for itself alone, because all rows of its window are there.

    Parameters
    ----------
    spec
        The windows and their time column.
    """

    outlives_lease = True
    drops_stretches = True
    holds_answers_back = True
    schema = schema_of(field_types(WindowMarks), "first", "marks", "opens_us")

    def __init__(self, spec: WindowSpec) -> None:
        self.time = spec.time
        self.fan: Fan = spec.fan
        self._delivered: set[str] = set()

    def check(self, rows: DataFrame, point: DropPoint) -> None:
        if not isinstance(self.time, str):
            validate.expression(rows, self.time, "time", where=point.place)
        time = validate.timestamp(rows, self._name(rows), where=point.place, argument="time")
        field = rows.schema[time]
        validate.zoned(field.dataType, time, where=point.place)
        if _WATERMARK_MARK not in field.metadata:
            refuse(
                f"`withWatermark` on {time!r} must stand before the guard",
                "a stream without it",
                where=point.place,
                hint="behind the guard, dropped rows would stop the watermark and kept windows would never close",
            )

    def _name(self, rows: DataFrame) -> str:
        """Name of the time column, which may be given as a column too."""
        return self.time if isinstance(self.time, str) else rows.select(self.time).columns[0]

    def check_before_start(self, *, where: str) -> None:
        for branch in self.fan.branches:
            if branch.name not in self._delivered:
                refuse(
                    "with WindowDrop the answers must go through `shedder.deliver(...)`",
                    f"none that did for {branch.name!r}",
                    where=where,
                    hint="windows that were dropped in part would come out wrong",
                )

    def deliver(
        self, answers: DataFrame, window: Column | str, query: str | None, plan: Column, *, where: str
    ) -> DataFrame:
        """The answers of windows that were kept whole; what is left is exact.

        A row that a kept window needs may also lie in a dropped one, so that window comes out of the aggregate in part. Two
        filters keep it from the reader. Spark moves the first below the aggregate, so that a dropped window takes neither
        work nor state; it is left out where a row lies in one window alone, because the guard has dropped all such rows
        already. The second stays where the answers leave: it catches a window that some rows had reached before its mark
        did.
        """
        places = {branch.name: place for place, branch in enumerate(self.fan.branches)}
        query, place = validate.only(places, query, "query", "name one of the policy's queries")
        self._delivered.add(query)
        window = _column_of_windows(answers, window)
        if self._keeps_rows_of_dropped_windows:
            answers = answers.where(self.not_dropped(place, window, plan))
        # As a column the subquery is planned once, and not again for each of its fields.
        judged = answers.withColumn(PLAN, plan)
        kept = self.delivers(place, window, F.col(PLAN))
        grid = self.fan.branches[place].pipeline.final
        # Partitions have no negative number: this never holds, but it ties the filter to its place.
        never = F.spark_partition_id() < -1
        differs = F.when(_differs(window, grid), F.raise_error(_complaint(window, grid)))
        return judged.where(differs.when(kept, F.lit(True)).otherwise(never)).drop(PLAN)

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """For each query: its first marked window, its marks as an array, and when rows are needed again."""
        all_marks = F.array_join(setting["marks"], "")
        fields = {"readable": F.lit(True), "drops": F.contains(all_marks, F.lit(DROP))}
        for place in range(len(self.fan.branches)):
            marks = F.get(setting["marks"], F.lit(place))
            kept = F.transform(F.split(marks, ""), lambda letter: letter != DROP)
            fields[f"first{place}"] = F.get(setting["first"], F.lit(place))
            # Null while the query misses no window: Spark does not compute the index into an array that is null.
            fields[f"kept{place}"] = F.when(F.contains(marks, F.lit(DROP)), kept)
            fields[f"opens{place}"] = F.get(setting["opens_us"], F.lit(place))
        return fields

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Keep a row if any query needs it, or if nothing says that none does."""
        time = F.unix_micros(rows[self._name(rows)])
        needed = [self._needed(place, branch.pipeline, time, plan) for place, branch in enumerate(self.fan.branches)]
        # While nothing is dropped, not even the row's window is computed.
        return ~F.coalesce(plan["drops"], F.lit(False)) | reduce(or_, needed), F.lit(1.0)

    def _needed(self, place: int, pipeline: Pipeline, time: Column, plan: Column) -> Column:
        # Outside the marks, and where the window itself is kept, there is nothing to wait for.
        opens = _at(plan[f"opens{place}"], first_holding(pipeline, time) - plan[f"first{place}"])
        return F.coalesce(opens <= time, F.lit(True))

    @property
    def _keeps_rows_of_dropped_windows(self) -> bool:
        """Whether a kept row may lie in a dropped window too: in a second one that overlaps, or in that of another query."""
        return len(self.fan.branches) > 1 or self.fan.has_overlap

    def not_dropped(self, place: int, window: Column, plan: Column) -> Column:
        """Whether the window is not marked as dropped, in as few looks at the plan as will do. Never null."""
        kept = _at(plan[f"kept{place}"], self._number(place, window) - plan[f"first{place}"])
        return F.coalesce(kept, F.lit(True))

    def delivers(self, place: int, window: Column, plan: Column) -> Column:
        """Whether the answer for `window`, a struct of start and end, of the query at `place` may leave the query.

        Never null. Without a readable plan nothing is delivered, because nobody could vouch for it.
        """
        first = plan[f"first{place}"]
        return (
            F.when(plan["readable"].isNull(), F.lit(False))
            .when(first.isNull(), F.lit(True))
            .when(self._number(place, window) < first, F.lit(False))
            .otherwise(self.not_dropped(place, window, plan))
        )

    def _number(self, place: int, window: Column) -> Column:
        grid = self.fan.branches[place].pipeline.final
        return floor_divided(F.unix_micros(window["start"]) - grid.offset, grid.slide)


def _at(marks: Column, place: Column) -> Column:
    """The entry at a place, null outside: also where a clock is decades off and the place is beyond all integers."""
    return F.get(marks, place.try_cast("int"))


def first_holding(pipeline: Pipeline, time: Column) -> Column:
    """`Pipeline.first_holding` as a column."""
    for level in pipeline.levels[:-1]:
        time = _first_ending_after(level, time) * level.slide + (level.offset + level.size - 1)
    return _first_ending_after(pipeline.final, time)


def _first_ending_after(grid: Grid, time: Column) -> Column:
    return floor_divided(time - (grid.size + grid.offset), grid.slide) + 1


def floor_divided(time: Column, by: int) -> Column:
    """`time // by` for whole numbers; Spark's own division rounds towards zero."""
    shift = _BEFORE_ALL_TIMES_US // by + 1
    return F.call_function("div", time + shift * by, F.lit(by)) - shift


def _column_of_windows(answers: DataFrame, window: Column | str) -> Column:
    """The column of the answers' windows; anything else is refused."""
    if isinstance(window, str):
        column = F.col(validate.quoted(validate.resolved(answers, window, "window", where="`deliver`")))
    else:
        validate.expression(answers, window, "window", where="`deliver`")
        column = window
    field = answers.select(column).schema[0]
    if _SESSION_MARK in field.metadata:
        refuse(
            "`WindowDrop` needs windows of a fixed size",
            "session windows",
            hint="a session ends where rows are missing, so none can be dropped ahead of its rows; use UniformDrop",
            error=Unsupported,
        )
    if not (isinstance(field.dataType, StructType) and {"start", "end"} <= set(field.dataType.names)):
        refuse(
            "`window` must name the column that Spark's `window` made",
            f"{window!r} of type {field.dataType.simpleString()}",
            hint="call `deliver` on the aggregate itself, before its window is unpacked",
            error=InvalidInput,
        )
    return column


def _differs(window: Column, grid: Grid) -> Column:
    start, end = F.unix_micros(window["start"]), F.unix_micros(window["end"])
    return (end - start != grid.size) | (F.pmod(start - grid.offset, F.lit(grid.slide)) != 0)


def _complaint(window: Column, grid: Grid) -> Column:
    hint = "give WindowDrop the windows of the query"
    told, _, rest = explain(f"windows of {grid}, {OTHER_WINDOWS}", "one from {}", hint=hint).partition("{}")
    start, end = (window[name].cast("string") for name in ("start", "end"))
    return F.concat(F.lit(told), start, F.lit(" to "), end, F.lit(rest))
