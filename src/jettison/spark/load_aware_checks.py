"""What `load_aware` refuses, and when: arguments and columns before the query starts, batches when they come."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, NumericType, StructType

from jettison.costs.batches import Batches
from jettison.costs.partition import PartitionSettings
from jettison.costs.worth import Worth, column_of, no_numbers
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn, Unsupported, explain
from jettison.spark import validate

_WHERE = "load_aware"
QUERY_BOUND_OVER_FUNCTIONS = 2.5
"""Least ratio of the bounds of a query and of a function in it. A row's latency is its age when its task starts, up to 0.9
of the function's bound, and then its batch, which works for up to the bound: close to 2 bounds and the fixed cost of a
trigger, where the controller steers for 0.8 of the query's bound. Less, and the guard sheds in the function's stead."""


def arguments(fn: object, rule: str, value: Worth | None, lookahead_rows: int, sketch: Sequence[int]) -> None:
    """What can be judged without Spark."""
    if not callable(fn):
        raise InvalidInput(
            explain(
                "`fn` must be a function of an iterator of record batches",
                repr(fn),
                where=_WHERE,
                hint="pass what you would pass to `mapInArrow`, itself and not its result",
            )
        )
    if rule not in ("fewest", "in turn"):
        raise InvalidSetting(
            explain(
                "`rule` must be 'fewest' or 'in turn'",
                repr(rule),
                where=_WHERE,
                hint="'fewest' drops fewer rows; 'in turn' is the paper's",
            )
        )
    if rule == "in turn" and value is not None:
        raise InvalidSetting(
            explain(
                "no `value` under the rule 'in turn', which judges a row by the queue before it alone",
                repr(value),
                where=_WHERE,
                hint="leave `rule` out to drop by cost per unit of utility",
            )
        )
    if lookahead_rows < 1:
        raise InvalidSetting(
            explain(
                "`lookahead_rows` must be positive",
                str(lookahead_rows),
                where=_WHERE,
                hint="50,000 rows suit most functions; 1 decides on each row as it comes",
            )
        )
    if not (isinstance(sketch, Sequence) and len(sketch) == 2 and all(isinstance(size, int) for size in sketch)):
        raise InvalidSetting(
            explain(
                "`sketch` must be two whole numbers, rows and columns",
                repr(sketch),
                where=_WHERE,
                hint="leave it out: (2, 2048) tells some thousand keys apart in 64 KiB",
            )
        )


def active_session() -> SparkSession:
    """The session, with a SparkContext: what is learned travels in an accumulator."""
    spark = SparkSession.getActiveSession()
    if spark is None or not hasattr(spark, "sparkContext"):
        raise Unsupported(
            explain(
                "an active Spark session with a SparkContext, to collect what is learned",
                "none" if spark is None else "Spark Connect",
                where=_WHERE,
                hint="call it after `SparkSession.builder.getOrCreate()` on a session that is not Spark Connect",
            )
        )
    return spark


def no_fight(query_bound_s: float, function_bound_s: float) -> None:
    """The query's bound must leave the function's room."""
    if query_bound_s < QUERY_BOUND_OVER_FUNCTIONS * function_bound_s:
        raise InvalidSetting(
            explain(
                f"the query's bound must be at least {QUERY_BOUND_OVER_FUNCTIONS:g} times the function's, "
                f"{QUERY_BOUND_OVER_FUNCTIONS * function_bound_s:g} s",
                f"{query_bound_s:g} s",
                where=_WHERE,
                hint="a row may wait for the function's bound and its batch may work as long again; with less the guard "
                "would drop rows at random that the function had room for",
            )
        )


def columns(rows: DataFrame, settings: PartitionSettings) -> None:
    """Key, arrival and value must be there, and of a type that serves."""
    validate.present(rows, settings.key, "key", where=_WHERE)
    kind = rows.schema[settings.key].dataType
    if isinstance(kind, (ArrayType, MapType, StructType)):
        raise InvalidSetting(
            explain(
                "`key` must name a column of single values",
                f"{settings.key!r} of type {kind.simpleString()}",
                where=_WHERE,
                hint="take the part that the cost depends on; for several take concat_ws of them",
            )
        )
    if settings.arrival is not None:
        validate.timestamp(rows, settings.arrival, where=_WHERE)
    if settings.value is None:
        return
    name = column_of(settings.value)
    validate.present(rows, name, "value", where=_WHERE)
    kind = rows.schema[name].dataType
    if not isinstance(kind, NumericType):
        raise InvalidSetting(no_numbers(name, kind.simpleString()))


def arrived(batches: Batches, settings: PartitionSettings) -> Batches:
    """The batches, if they are Arrow's and have the columns."""
    names = (settings.key, settings.arrival, None if settings.value is None else column_of(settings.value))
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidInput(
                explain(
                    "Arrow record batches",
                    type(batch).__name__,
                    where=_WHERE,
                    hint="pass the wrapped function to `mapInArrow`; `batch.to_pandas()` gives it frames to work on",
                )
            )
        for name in names:
            if name is not None and name not in batch.schema.names:
                raise MissingColumn(
                    explain(
                        f"a column of the stream ({', '.join(batch.schema.names)})",
                        repr(name),
                        where=_WHERE,
                        hint="select it before the function; `LoadAware.map` tells so before the start",
                    )
                )
        yield batch
