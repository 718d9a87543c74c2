"""What a box makes of missing rows, read from Spark's plan of its function; nobody has to vouch for his own query.

A box is cleared if every operator in it is known to treat rows one by one, or to use their weights. What is not
understood is not cleared: then nothing is dropped before the box, and its plan says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.policies.network.graph import Box
from jettison.spark.drop_point import WEIGHT
from jettison.spark.explained import OURS, Node, analyzed_plan, attributes, explained, in_words, lists, split

_MARK = 733_194_721
_MARKED = re.compile(rf"Filter \({_MARK} = (\d+)\)")
_ROW_BY_ROW = re.compile(
    r"(Project|Filter|Expand|Generate|SubqueryAlias|View|CollectMetrics|EventTimeWatermark|Repartition\w*|RebalancePartitions"
    r"|ResolvedHint|WithCTE|CTERelation\w+|Sort|Union)\b"
)
_JOIN = re.compile(r"Join (\w+)")
_SIDE_THAT_MAY_LOSE = {"LeftOuter": 0, "LeftSemi": 0, "LeftAnti": 0, "RightOuter": 1}
_ITEM = re.compile(r"(?:(?P<made>.*) AS )?(?P<name>[^#]*)#(?P<id>\d+)L?(?:-T\d+ms)?$", re.DOTALL)
_CUT_SHORT = "more fields"  # what Spark writes in place of the rest of a long list
_ALL_FIELDS = "spark.sql.debug.maxToStringFields"


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """What is known of a box.

    Parameters
    ----------
    because
        Why its answers would be wrong if rows were missing, in words; empty if they would not.
    bounds
        Whether its answers have bounds, which take rows to be kept independently of each other.
    keeps_value
        Whether the value column leaves as it came.
    estimates
        Columns that are made of weights.
    """

    because: str
    bounds: bool
    keeps_value: bool
    estimates: frozenset[str]

    def of(self, box: Box) -> Box:
        """A box as it was read. Where its owner says that the value changes, that counts too."""
        right, kept = not self.because, box.keeps_value and self.keeps_value
        return replace(box, weighted=right, monotone=right, bounds=self.bounds, keeps_value=kept, because=self.because)


def box_facts(
    function: Callable[..., DataFrame], entering: Sequence[tuple[DataFrame, Collection[str]]], *, value: str
) -> BoxFacts:
    """Read a box's function from what it makes of the rows that enter; runs no query.

    Parameters
    ----------
    function
        The box's own.
    entering
        For each source its rows, and the columns in them that are made of weights, `jt_weight` at least.
    value
        Name of the value column.
    """
    marked = [rows.select("*").where(F.lit(_MARK) == F.lit(port)) for port, (rows, _) in enumerate(entering)]
    with _all_fields(marked[0].sparkSession):
        plan = analyzed_plan(explained(function(*marked).select("*").explain))
    if not plan:
        return BoxFacts("Spark's plan of it cannot be read", True, False, frozenset())
    return _Reading(plan, [frozenset(columns) for _, columns in entering], value).facts()


class _Reading:
    """Reads the part of a plan that lies between a box's answer and the rows that enter it."""

    def __init__(self, plan: Sequence[Node], estimates: Sequence[frozenset[str]], value: str) -> None:
        self._plan, self._value = plan, value
        # Where the rows enter, with the port that they come by.
        self._doors = {node: int(match[1]) for node in plan if (match := _MARKED.match(_text(node)))}
        self._of_weights: set[str] = set()
        self._of_value: set[str] = set()
        self._reasons = [] if self._doors else ["the rows that enter are not in Spark's plan of it"]
        self._bounds = False
        for door, port in self._doors.items():
            for name, attribute in _columns(door.children[0]).items():
                if name in estimates[port]:
                    self._of_weights.add(attribute)
                if name.lower() == value.lower():
                    self._of_value.add(attribute)

    def facts(self) -> BoxFacts:
        beyond = {node for door in self._doors for node in door.below}
        for node in reversed(self._plan):  # what is read comes after who reads it
            if node not in beyond and self._reaches(node):
                self._pass(node)
        leaving = _columns(self._plan[0])
        kept = any(name.lower() == self._value.lower() and one in self._of_value for name, one in leaving.items())
        estimates = frozenset(name for name, one in leaving.items() if one in self._of_weights)
        if WEIGHT in set(leaving) - estimates:
            self._reasons.append(f"its `{WEIGHT}` is not made of those that enter")
        return BoxFacts("; ".join(dict.fromkeys(self._reasons)), self._bounds, kept, estimates)

    def _reaches(self, node: Node) -> set[int]:
        """Ports whose rows come this way."""
        below = node.below
        return {port for door, port in self._doors.items() if door in below}

    def _pass(self, node: Node) -> None:
        text = _text(node)
        join = _JOIN.match(text)
        if join:
            self._join(join[1], node.children[-2:])
        elif text.startswith("Aggregate "):
            self._aggregate(text)
        elif _ROW_BY_ROW.match(text):
            self._trace(_items(text))
        else:
            self._reasons.append(f"what {_words(text)} makes of missing rows is not known")

    def _join(self, kind: str, sides: Sequence[Node]) -> None:
        """A row may be missing where its partners leave no trace of that: not on a side that others are looked up in."""
        reach = [self._reaches(side) for side in sides]
        if kind not in ("Inner", "Cross") and (kind not in _SIDE_THAT_MAY_LOSE or reach[1 - _SIDE_THAT_MAY_LOSE[kind]]):
            self._reasons.append(f"in a {kind} join a row that lost its partner passes for one that has none")
        if reach[0] & reach[1]:
            self._reasons.append("it joins rows with themselves, so that weights do not multiply")

    def _aggregate(self, text: str) -> None:
        found = [each for each in lists(text)[-2:] if each]
        keys, results = found if len(found) == 2 else ([], found[0])
        for item in results:
            match = _ITEM.match(item)
            made = item if match is None or match["made"] is None else match["made"]
            used = attributes(made)
            is_key = made in keys or (used <= attributes(" ".join(keys)) and "(" not in made)
            ours = OURS in made
            if used & self._of_weights or (ours and _CUT_SHORT in made):
                self._bounds = self._bounds or ours or not self._is_total(made)
            elif not is_key:
                self._reasons.append(f"{_words(made)} does not use `{WEIGHT}`")
        self._trace(results)

    def _is_total(self, made: str) -> bool:
        """Whether weights are only added up, so that no bound can be made of them: each in a sum, once."""
        rest, _, after = made.partition("sum(")
        if not after:
            return not attributes(made) & self._of_weights
        depth, end = 1, 0
        while depth and end < len(after):
            depth += (after[end] == "(") - (after[end] == ")")
            end += 1
        once = sum(one in self._of_weights for one in re.findall(r"#(\d+)", after[:end])) <= 1
        return once and self._is_total(rest) and self._is_total(after[end:])

    def _trace(self, items: Sequence[str]) -> None:
        """Follow weights and value under new names."""
        if any(_CUT_SHORT in item for item in items):
            self._reasons.append("Spark does not print all of its columns")
        for item in items:
            match = _ITEM.match(item)
            if match is None or match["made"] is None:
                continue
            if attributes(match["made"]) & self._of_weights:
                self._of_weights.add(match["id"])
            if (renamed := _ITEM.match(match["made"])) and renamed["made"] is None and renamed["id"] in self._of_value:
                self._of_value.add(match["id"])


@contextmanager
def _all_fields(spark: SparkSession) -> Iterator[None]:
    """Long lists of columns are printed whole; nothing else in the session changes."""
    before = spark.conf.get(_ALL_FIELDS, None)
    spark.conf.set(_ALL_FIELDS, "10000")
    try:
        yield
    finally:
        spark.conf.unset(_ALL_FIELDS) if before is None else spark.conf.set(_ALL_FIELDS, before)


def _text(node: Node) -> str:
    return node.text.removeprefix("~")


def _items(text: str) -> list[str]:
    """The columns that a projection lists; none for operators that make no columns."""
    return split(text.partition("[")[2].rpartition("]")[0]) if text.startswith("Project [") else []


def _columns(projection: Node) -> Mapping[str, str]:
    """By name, the attribute that a projection gives out."""
    matches = [_ITEM.match(item) for item in _items(_text(projection))]
    return {match["name"]: match["id"] for match in matches if match is not None}


def _words(text: str) -> str:
    words = in_words(text)
    return f"`{words if len(words) <= 60 else words[:57] + '...'}`"
