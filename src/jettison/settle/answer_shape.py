"""What the answers of a query look like, and whether each is made of the rows of its own window alone.

Only then a window can be settled by itself. It is read from the query's analyzed plan, over a stream with the same
columns: one aggregate by windows of the watermark's column; below it operators that treat rows one by one; above it
nothing but columns. What this module does not understand is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from jettison.answers.answer_status import EXACT
from jettison.errors import InvalidInput, Unsupported, refuse
from jettison.policies.window.window_grid import Grid
from jettison.settle.live_session import adopted
from jettison.settle.touched_windows import Window
from jettison.spark import doubts
from jettison.spark.explained import Node, analyzed_plan, explained

Query = Callable[..., DataFrame]
"""Makes answers of the rows of a query's sources, guarded or not."""

SETTLED_AT = "settled_at"
"""Column of exact answers that says when they were made."""

_MARK = "jettison_settle_rows"
_ABOVE = re.compile(r"~?(Project|SubqueryAlias|Sort|ResolvedHint|Repartition\w*|View)\b")
_BELOW = re.compile(
    r"~?(Project|Filter|Expand|Generate|SubqueryAlias|ResolvedHint|Repartition\w*|View|Union|EventTimeWatermark"
    r"|WithCTE|CTERelation\w+)\b"
)
# A join with what is no stream: by the side on which the stream stands.
_JOIN = (
    re.compile(r"~?Join (Inner|Cross|LeftOuter|LeftSemi|LeftAnti)\b"),
    re.compile(r"~?Join (Inner|Cross|RightOuter)\b"),
)
_BY_WINDOW = re.compile(r"\bwindow#\d+-T\d+ms")  # of the watermark's column
# What differs from one time to the next that the same query is written.
_CHANGES = re.compile(r"#\d+L?|\bx_\d+|\b[0-9a-f]{12}:|EventTimeWatermark [\w-]+|(?<=CTERelation...) \d+|@[0-9a-f]+\b")
_ALL_FIELDS = {"spark.sql.debug.maxToStringFields": str(2**31 - 1)}
_CHANCE = re.compile(
    r"\b(current_(?:timestamp|date|time)|now|localtimestamp|rand(?:om|n|str)?|uniform|uuid|shuffle"
    r"|monotonically_increasing_id|spark_partition_id)\(",
    re.I,
)
_WINDOW_MARKS = {"spark.timeWindow", "spark.watermarkDelayMs"}
# How Spark finds the windows of a time: their offset and slide, and further on their size.
_TIME = r"precisetimestampconversion\([^()]*-T\d+ms, TimestampType, LongType\)"
_START = re.compile(rf"\({_TIME} - (-?\d+)\) % (\d+)\)")
_END = re.compile(r"\) \+ (\d+)\), LongType, TimestampType\)")
_DELAY = re.compile(r"-T(\d+)ms\b")  # beside the watermark's column, and each window that is made of it
_ANSWER = {"value", "lower", "upper", "kept", "status"}


class Shape:
    """How the answers of a query look.

    Parameters
    ----------
    window
        The column that holds their windows.
    fingerprint
        The same for the same query only.
    delay_us
        By how much the watermark follows the newest row.
    grid
        The windows that there are; `None` where the plan does not show it.
    """

    def __init__(
        self, schema: StructType, window: str, fingerprint: str, delay_us: int, grid: Grid | None = None
    ) -> None:
        self.window, self.fingerprint, self.delay_us = window, fingerprint, delay_us
        self.columns, self.grid = schema.names, grid
        self.answers = [field.name for field in schema.fields if is_answer(field.dataType)]
        """Columns that hold an answer with bounds."""

    def windows(self, answers: DataFrame) -> DataFrame:
        """All windows of some answers, as microseconds."""
        window = F.col(self.window)
        return answers.select(
            F.unix_micros(window["start"]).alias("start_us"), F.unix_micros(window["end"]).alias("end_us")
        ).distinct()

    def among(self, windows: Iterable[Window]) -> str:
        """The condition, in SQL, that an answer belongs to one of these windows."""
        window = f"`{self.window}`"
        chosen = ", ".join(f"({one.start_us}L, {one.end_us}L)" for one in windows)
        return f"(unix_micros({window}.start), unix_micros({window}.end)) in ({chosen})"

    def only(self, answers: DataFrame, windows: Iterable[Window]) -> DataFrame:
        """The answers of these windows, chosen once they are made.

        Spark must not choose among rows, of which there are many more. It does not where a condition is
        non-deterministic in the optimizer's eyes.
        """
        return answers.where(f"spark_partition_id() < 0 or {self.among(windows)}")

    def exact(self, answers: DataFrame) -> DataFrame:
        """The same answers, said to be what they are: exact, with bounds that are the value."""
        bounded = {
            name: F.col(name)
            .withField("lower", F.col(name)["value"].cast("double"))
            .withField("upper", F.col(name)["value"].cast("double"))
            .withField("status", F.lit(EXACT))
            for name in self.answers
        }
        return answers.withColumns(bounded) if bounded else answers


def is_answer(kind: Any) -> bool:
    """Whether a type is that of an answer with bounds."""
    return isinstance(kind, StructType) and set(kind.names) == _ANSWER


def shape_of(spark: SparkSession, query: Query, schemas: Sequence[StructType]) -> Shape:
    """The shape of a query over sources with these columns; refuses one whose windows cannot be settled one by one."""
    answers = query(*[_stream(spark, schema) for schema in schemas])
    if not isinstance(answers, DataFrame):
        refuse("the query must return a DataFrame", repr(answers), hint="return its answers", error=InvalidInput)
    with adopted(spark, _ALL_FIELDS):
        text = explained(answers.explain)
    plan = analyzed_plan(text)
    if not plan:
        _refuse_plan("a plan that Spark has cut short")
    words = "\n".join(_CHANGES.sub("", words) for words in _checked(plan))
    delay_us = max(map(int, _DELAY.findall(words))) * 1000
    fingerprint = hashlib.sha256(words.encode()).hexdigest()[:16]
    window = window_column(answers.schema)
    if not answers.schema[window].metadata.keys() >= _WINDOW_MARKS:  # which each expression loses
        hint = "return it so, under any name, and change it on the settled answers"
        refuse(
            "the column with the windows must be as `F.window` makes it", f"`{window}`", hint=hint, error=InvalidInput
        )
    return Shape(answers.schema, window, fingerprint, delay_us, _grid(text))


def _grid(plan: str) -> Grid | None:
    """The windows that a plan makes of its watermark's column, if it makes only those of one kind."""
    starts, sizes = set(_START.findall(plan)), set(_END.findall(plan))
    if len(starts) != 1 or len(sizes) != 1:
        return None
    ((offset, slide),), (size,) = starts, sizes
    return Grid(int(size), int(slide), int(offset))


def _stream(spark: SparkSession, schema: StructType) -> DataFrame:
    """A stream with these columns, which never runs."""
    empty = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
    return spark.readStream.format("rate").load().select(*empty, F.lit(1.0).alias("jt_weight")).alias(_MARK)


def window_column(schema: StructType) -> str:
    """The column of answers that holds their windows."""
    found = [field.name for field in schema.fields if _is_window(field.dataType)]
    if len(found) != 1:
        hint = "keep the column that `F.window` makes, and no other of its kind, in what the query returns"
        got = f"columns {schema.names}"
        refuse("the query's answers must have one column with their windows", got, hint=hint, error=InvalidInput)
    return found[0]


def _is_window(kind: Any) -> bool:
    if not isinstance(kind, StructType) or kind.names != ["start", "end"]:
        return False
    return all(isinstance(field.dataType, TimestampType) for field in kind.fields)


def _checked(plan: Sequence[Node]) -> list[str]:
    """The operators between the answers and the sources, and what they read beside, as texts."""
    ours = {node for node in plan if _MARK in node.text and "SubqueryAlias" in node.text}
    passed: dict[_Way, list[str]] = {}
    _descend(_Way(plan[0]), ours, passed)
    if (watermarks := len({way.node for way in passed if _is_watermark(way.node)})) != 1:
        _refuse_plan(f"{watermarks} watermarks")
    return [text for texts in passed.values() for text in texts]


class _Way(NamedTuple):
    """An operator on the way down to the sources; whether the aggregate, and the watermark, have been passed above it."""

    node: Node
    in_window: bool = False
    is_marked: bool = False


def _descend(way: _Way, ours: set[Node], passed: dict[_Way, list[str]]) -> None:
    node, in_window, is_marked = way
    if node in ours:
        if not in_window:
            _refuse_plan("rows that no window holds together")
        if not is_marked:  # the ledger knows nothing of their event times
            _refuse_plan("rows that pass no watermark")
        return
    if way in passed:  # two branches have met
        return
    ways = [child for child in node.children if child.below & ours]
    beside = [text for child in node.children if child not in ways for text in _written(child)]
    passed[way] = [node.text, *beside]
    operator = node.text.split(" ")[0].lstrip("~")
    if operator == "Aggregate":
        if in_window:
            _refuse_plan("a second aggregate")
        if not _BY_WINDOW.search(node.text.partition("], [")[0]):
            _refuse_plan("an aggregate by other keys than windows")
        in_window = True
    elif operator == "Join" and in_window and len(ways) == 1:
        if not _JOIN[node.children.index(ways[0]) and 1].match(node.text):
            _refuse_plan(node.text.splitlines()[0][:80])
    elif not (_BELOW if in_window else _ABOVE).match(node.text):
        _refuse_plan(f"{operator} {'before' if in_window else 'after'} its aggregate")
    if in_window and (chance := _CHANCE.search("\n".join(passed[way]))):
        _refuse_plan(f"{chance[1].lower()}(), which differs from one run to the next")
    for child in ways:
        _descend(_Way(child, in_window, is_marked or _is_watermark(node)), ours, passed)


def _written(node: Node) -> list[str]:
    """An operator and all below it, but for where answers look up whether rows are missing."""
    texts = [node.text, *(text for child in node.children for text in _written(child))]
    return [] if any(doubts.VIEWS in text for text in texts) else texts


def _is_watermark(node: Node) -> bool:
    return node.text.lstrip("~").startswith("EventTimeWatermark")


def _refuse_plan(got: str) -> NoReturn:
    refuse(
        "each answer must be made of the rows of its own window alone: one watermark, one aggregate by `F.window`, rows "
        "treated one by one before it and nothing but columns after it",
        got,
        hint="pass the part of the query up to its aggregate, and do the rest on the settled answers",
        error=Unsupported,
    )
