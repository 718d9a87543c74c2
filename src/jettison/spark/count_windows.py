"""Count-based windows, which Spark lacks, with whole windows dropped: a stateful operator.

Python runs on the row path here; `transformWithState` reaches some ten thousand rows a second and core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jettison.errors import Unsupported, refuse
from jettison.policies.window.counted_windows import Counted, CountWindows
from jettison.policies.window.window_choice import DecisionState, Runs
from jettison.policies.window.window_grid import Grid
from jettison.spark import validate

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STATE = "seen BIGINT, run INT, owed DOUBLE, open ARRAY<BIGINT>, buffered ARRAY<DOUBLE>"


def count_windows(
    rows: DataFrame,
    *,
    key: str | Column,
    order: str | Column,
    value: str | Column,
    size: int,
    slide: int | None = None,
    max_gap: int,
    drop_share: Column | float = 0.0,
) -> DataFrame:
    """Windows of `size` consecutive rows of each key, some of them dropped, every delivered one complete.

    At most `max_gap` consecutive windows of a key are missing. The decision falls with a window's first row and is kept
    in the query's state, so it holds across micro-batches, retries and restarts.

    Parameters
    ----------
    rows
        A streaming DataFrame. The session must use the RocksDB state store.
    key
        Column by which windows are counted.
    order
        Column that orders the rows of one micro-batch, nulls first; a row counts from when it arrives.
    value
        Column of numbers to collect.
    size, slide
        Of the windows, in rows; without a slide they tumble.
    max_gap
        Most consecutive windows that may be missing, for each key.
    drop_share
        Share of windows to drop, which may change from row to row; where it is null, nothing is dropped. No controller
        sets it.

    Returns
    -------
    DataFrame
        The key, `window` (its number, from 0) and `values` in order: what to make of them is up to native functions.
    """
    validate.streaming(rows, where="count_windows")
    for argument, given in (("key", key), ("order", order), ("value", value)):
        if isinstance(given, str):
            validate.present(rows, given, argument, where="count_windows")
        else:
            validate.expression(rows, given, argument, where="count_windows")
    machine = CountWindows(Grid(size, size if slide is None else slide), Runs(max_gap))
    share = _share(drop_share)
    _refuse_other_state_stores(rows.sparkSession)
    fed = rows.select(
        (F.col(key) if isinstance(key, str) else key).alias("key"),
        (F.col(order) if isinstance(order, str) else order).alias("at"),
        (F.col(value) if isinstance(value, str) else value).cast("double").alias("value"),
        share.alias("share"),
    )
    answers = fed.groupBy("key").transformWithState(
        _Processor(machine),
        f"key {fed.schema['key'].dataType.simpleString()}, window BIGINT, values ARRAY<DOUBLE>",
        "Append",
        "None",
    )
    return answers.withColumnRenamed("key", key if isinstance(key, str) else rows.select(key).columns[0])


def _share(drop_share: Column | float) -> Column:
    if isinstance(drop_share, Column):
        return F.coalesce(drop_share.cast("double"), F.lit(0.0))
    if not 0.0 <= drop_share <= 1.0:
        hint = "pass a share of 1, not a percentage"
        refuse("`drop_share` must lie in [0, 1]", repr(drop_share), hint=hint)
    return F.lit(float(drop_share))


def _refuse_other_state_stores(spark: SparkSession) -> None:
    provider = str(spark.conf.get(_PROVIDER))
    if not provider.endswith(_ROCKSDB.rpartition(".")[2]):  # vendors have their own
        hint = f"spark.conf.set({_PROVIDER!r}, {_ROCKSDB!r})"
        refuse("count-based windows need the RocksDB state store", provider, hint=hint, error=Unsupported)


class _Processor(StatefulProcessor):
    """Feeds the machine of each key and keeps its state with the query's."""

    def __init__(self, machine: CountWindows) -> None:
        self._machine = machine

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("windows", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        state = _restored(self._state.get()) if self._state.exists() else self._machine.start()
        for row in sorted(rows, key=lambda row: (row["at"] is not None, row["at"])):
            state, answers = self._machine.feed(state, [row["value"]], row["share"])
            for window, values in answers:
                yield Row(key=key[0], window=window, values=list(values))
        decision = state.decision
        self._state.update((state.seen, decision.run, decision.owed, list(state.open), list(state.values)))

    def close(self) -> None:
        pass


def _restored(stored: Any) -> Counted:
    seen, run, owed, open_windows, buffered = stored
    return Counted(seen, DecisionState(run, owed), tuple(open_windows), tuple(buffered))
