"""Hands each micro-batch to the sinks of a network's outputs, some side by side: each leaves part of the cores idle."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.core.documents import rule
from jettison.spark.network_rows import OUTPUT, Sink

SINKS_AT_ONCE = 4
"""Sinks that run side by side, unless told otherwise."""
AtOnce = Annotated[int, rule("must be 1 or more", "1 calls one sink after another", ge=1)]


def deliver_batch(
    sinks: Mapping[str, Sink], columns: Mapping[str, str], at_once: AtOnce, batch: DataFrame, batch_id: int
) -> None:
    """Hand one micro-batch to the sinks, computed once; `columns` says in which each output's rows travel.

    It has as many partitions as all outputs together, and a sink finds its rows in few of them; the numbers' ranges,
    which are kept with the rows, spare it the others. So the batch is computed with all, and then read with as many
    tasks as one output has: twenty outputs would otherwise start the tasks of twenty outputs twenty times.
    """
    conf = batch.sparkSession.conf  # the query's own: nobody else's session is changed
    tasks = int(str(conf.get("spark.sql.shuffle.partitions")))
    conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")  # for rows read once and kept a moment
    batch.persist()
    try:
        batch.count()
        calls = {}
        for number, (name, column) in enumerate(columns.items()):
            rows = batch.where(F.col(OUTPUT) == number).select(f"{column}.*").coalesce(tasks)
            calls[name] = partial(sinks[name], rows, batch_id)
        call_sinks(batch.sparkSession, calls, at_once)
    finally:
        batch.unpersist()


def call_sinks(spark: SparkSession, calls: Mapping[str, Callable[[], None]], at_once: AtOnce) -> None:
    """Call every output's sink, `at_once` of them side by side, and return when all are done.

    After an error no further sink is called; those that run are waited for, and the error of the first output that
    has one is raised, with that output's name. Sinks begin in the order of the outputs. Each runs with the local
    properties of the caller, so that its jobs belong to the query and end with it.
    """
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in calls:
        waiting.put(name)
    errors: dict[str, BaseException] = {}

    def work() -> None:
        while not errors:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                calls[name]()
            except BaseException as error:  # whatever it is, it belongs to the caller
                errors[name] = error

    if min(at_once, len(calls)) <= 1:
        work()  # in the caller's own thread, as a query of one sink has it
    else:
        threads = [InheritableThread(target=work, session=spark, daemon=True) for _ in range(min(at_once, len(calls)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name in calls:
        if name in errors:
            errors[name].add_note(f"in the sink of output {name!r}")
            raise errors[name]
