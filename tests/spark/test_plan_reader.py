"""What is learned from a running query's plan, also where it cannot be read: then the worst is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from jettison.spark import plan_reader
from jettison.spark.drop_point import DropPoint
from jettison.spark.mechanisms import RandomMechanism
from jettison.spark.plan_reader import PlanReader

pytestmark = pytest.mark.spark
POINT = DropPoint("rows", ("id",), observed=False)
PLAIN = f"""== Parsed Logical Plan ==
'Aggregate
== Analyzed Logical Plan ==
n: bigint
~Aggregate [key#2], [count(1) AS n#3L]
+- ~Filter {POINT.kept_mark}
   +- ~CollectMetrics {POINT.plan_metric}, [max(version#4) AS version#5]
      +- ~Relation [id#1L,key#2] json
== Optimized Logical Plan ==
Aggregate
== Physical Plan ==
HashAggregate(keys=[key#2], functions=[count(1)])
+- Filter {POINT.kept_mark}
   +- Scan json [id#1L,key#2]
"""


class Heard:
    """A pilot that only listens."""

    def __init__(self) -> None:
        self.dependent: list[str] = []
        self.found: list[Any] = []
        self.shrink: list[str] = []
        self.faults: list[str] = []
        self.strange = 0
        self.takes_every_row = self.sees_all_input = False
        self.independent = False
        self.times_are_of_all: bool | None = None

    def rows_are_dependent(self, point: str, multipliers: Sequence[str]) -> None:
        self.dependent += multipliers

    def rows_are_independent(self) -> None:
        self.independent = True

    def answers_found(self, *found: Any) -> None:
        self.found.append(found)

    def answers_shrink(self, results: Sequence[str]) -> None:
        self.shrink += results

    def unguarded(self) -> None:
        self.strange += 1

    def fault(self, kind: str, detail: str) -> None:
        self.faults.append(f"{kind}: {detail}")


def read(text: str, *, batches: int = 1) -> tuple[Heard, int]:
    """What the pilot heard, and how often the plan was printed."""
    heard, printed = Heard(), []

    def explain(extended: bool) -> None:
        printed.append(text)
        print(text)

    reader = PlanReader(heard, (POINT,), {"rows": RandomMechanism()})  # type: ignore[arg-type]
    for _ in range(batches):
        reader.read(SimpleNamespace(explain=explain))  # type: ignore[arg-type]
    return heard, len(printed)


@pytest.mark.parametrize(("watermarks", "is_known"), [(0, True), (1, True), (2, False)])
def test_of_several_watermarks_spark_tells_the_times_of_one(watermarks: int, is_known: bool) -> None:
    """So what it tells of a batch is not known to be of all rows; nor is it where the plan cannot be read."""
    marks = "".join(f"   {'   ' * n}+- ~EventTimeWatermark {n}, at#9, 1 seconds\n" for n in range(watermarks))
    guard = f"   +- ~CollectMetrics {POINT.plan_metric}"
    heard, _ = read(PLAIN.replace(guard, f"{marks}   {'   ' * watermarks}+- ~CollectMetrics {POINT.plan_metric}"))
    assert heard.times_are_of_all is is_known
    heard, _ = read(PLAIN.replace("== Optimized Logical Plan ==", "== Other ==") if is_known else PLAIN)
    assert heard.times_are_of_all is not is_known


MARKED = "~EventTimeWatermark 1, at#9, 1 seconds\n            +- ~Relation"


@pytest.mark.parametrize(
    ("sides", "is_known"),
    [
        ((MARKED, "~Relation"), False),
        (("~Project\n      :     +- StreamingDataSourceV2Relation", MARKED), False),
        ((MARKED, "Project\n            +- Relation"), True),
    ],
)
def test_times_are_of_all_rows_only_if_all_pass_the_watermark(sides: tuple[str, str], is_known: bool) -> None:
    """What is no stream needs none."""
    one, other = sides
    two = f"\n      +- ~Union\n         :- {one}\n         +- {other}\n"
    heard, _ = read(PLAIN.replace("\n      +- ~Relation [id#1L,key#2] json\n", two))
    assert heard.times_are_of_all is is_known


def test_a_plan_that_shows_all_guards_is_read_once() -> None:
    heard, printed = read(PLAIN, batches=5)
    assert (printed, heard.dependent, heard.found, heard.faults) == (1, [], [({}, None)], [])
    assert heard.shrink == ["count(1) AS n"]


@pytest.mark.parametrize("failing", ["multipliers", "judged", "unweighted"])
def test_what_cannot_be_read_is_taken_for_the_worst_and_the_rest_is_read(
    monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("a comma")

    monkeypatch.setattr(plan_reader, failing, fail)
    heard, printed = read(PLAIN, batches=5)
    assert printed == 1
    assert heard.found == [({}, None)]
    assert bool(heard.dependent) == (failing == "multipliers")
    assert bool(heard.shrink) == (failing != "unweighted")
    assert [fault for fault in heard.faults if "a comma" in fault] == heard.faults != []


def test_a_plan_that_spark_cuts_short_shows_nothing() -> None:
    cut = PLAIN[: PLAIN.index("+- Scan")] + "... 99 more characters"
    for text in (cut, cut.replace(POINT.plan_metric, "...")):
        heard, _ = read(text)
        assert "cut" in heard.dependent[0]
        assert not heard.strange


def test_a_query_that_reads_no_plan_of_ours_is_told_of_once() -> None:
    heard, printed = read(PLAIN.replace(POINT.plan_metric, "theirs").replace(POINT.kept_mark, "true"), batches=5)
    assert (heard.strange, printed) == (1, 1)


def test_a_guard_that_is_not_in_the_plan_is_looked_for_ever_more_rarely() -> None:
    heard, printed = read(PLAIN.replace(POINT.kept_mark, "true"), batches=1000)
    assert 8 < printed < 30
    assert not heard.dependent


@pytest.mark.parametrize("stops", ["GlobalLimit 5", "Tail 5"])
def test_a_query_that_may_stop_early_is_not_known_to_take_every_row(stops: str) -> None:
    assert read(PLAIN)[0].takes_every_row
    limited = PLAIN.replace("~Aggregate [key#2]", f"~{stops}\n+- ~Aggregate [key#2]").replace("\n+- ~F", "\n   +- ~F")
    assert not read(limited)[0].takes_every_row
    assert not read(PLAIN.replace("== Optimized", "== Cut"))[0].takes_every_row, "not known"


WHOLE = PLAIN.replace("      +- ~Relation", f"      +- ~Filter ({POINT.seen_mark})\n         +- ~Relation")


@pytest.mark.parametrize(
    ("below", "all_input"),
    [
        ("+- ~Relation", True),
        ("+- ~Project [id#1L]\n            +- ~EventTimeWatermark 1\n               +- ~Relation", True),
        ("+- ~Filter (id#1L > 5)\n            +- ~Relation", False),
        ("+- ~Union\n            :- ~Relation [x#8]\n            +- ~Relation", False),
        ("+- ~Generate explode(x#9)\n            +- ~Relation", False),
    ],
)
def test_a_guard_sees_all_input_where_nothing_below_it_changes_the_rows(below: str, all_input: bool) -> None:
    assert read(WHOLE.replace("+- ~Relation", below))[0].sees_all_input == all_input
    assert not read(PLAIN)[0].sees_all_input, "rows seen are not counted there"


def test_a_second_stream_is_input_that_the_guard_does_not_see() -> None:
    joined = WHOLE.replace("~Aggregate [key#2]", "~Join Inner\n:- ~Relation [key#7] json\n+- ~Aggregate [key#2]")
    assert not read(joined.replace("\n+- ~F", "\n   +- ~F"))[0].sees_all_input


def test_only_a_plan_that_shows_no_multiplied_rows_says_that_there_are_none() -> None:
    guard = f"+- Filter {POINT.kept_mark}\n   +- Scan"
    assert read(PLAIN)[0].independent
    assert not read(PLAIN.replace(guard, "+- Scan"))[0].independent, "a guard is not shown"
    heard, _ = read(PLAIN.replace(guard, "+- Generate explode(x#9)\n   " + guard.replace("   +", "      +")))
    assert (len(heard.dependent), heard.independent) == (1, False)
