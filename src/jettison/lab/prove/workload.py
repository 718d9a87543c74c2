"""What is run: a stream, a query over it, and how rows tell their group, time and value before they are parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jettison.lab.demo.schedule import EVENT_EPOCH_S, Schedule
from jettison.lab.prove.loads import Shape, step
from jettison.lab.prove.vocabulary import Vocabulary
from jettison.policies.base import Policy

Write = Callable[[SparkSession, Path, Schedule], None]
"""Writes the files of a schedule, as `prepared.rows_in` reads them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A query over a stream that does not wait.

    Parameters
    ----------
    name, what
        As the command and the page call it.
    write
        Makes the rows.
    answers
        The query: of rows as they arrive, in one of the vocabularies. Its answers have `end` (of their window), `keys`
        and `measures`.
    keys, measures
        What tells answers of a window apart, and what is judged of them.
    policies
        Jettison's, by name; the first is the one that its docs advise.
    left_out
        Why other policies cannot run on it, by name: given for the stream on which all that can are compared.
    group, value
        SQL over a row as it comes, for rivals that look at a row's key or value; `None` where the query has none.
    time
        SQL of the event time, likewise.
    shape
        How rows arrive.
    seconds
        Length of a run, in those that the command is told: windows must close in it.
    window_s
        Length of the query's windows.
    judged_one_in
        Where there are very many answers, those of one key in so many are judged.
    delay_s
        Of the watermark.
    end_is_key
        Whether answers are told apart by their end, too; not where shedding changes it, as with sessions.
    arrival_s
        When rows of an event time arrive, in seconds since the start; on the schedule's own clock unless given.
    """

    name: str
    what: str
    write: Write
    answers: Callable[[DataFrame, Vocabulary], DataFrame]
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    policies: Mapping[str, Callable[[], Policy]]
    time: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    value: str | None = None
    shape: Shape = field(default_factory=lambda: step(3.0))
    seconds: float = 1.0
    window_s: float = 5.0
    judged_one_in: int = 1
    delay_s: float = 1.0
    end_is_key: bool = True
    arrival_s: Callable[[Sequence[float]], Sequence[float]] = lambda times: [at - EVENT_EPOCH_S for at in times]
