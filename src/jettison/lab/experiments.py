"""All experiments by name: what each shows, and roughly how long it takes on two cores.

Imports none of them: help is quick and needs no extra, and one that is run needs no more than its own.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_UNDER_1, _FEW, _SOME, _MANY = "under 1 min", "1 to 3 min", "2 to 5 min", "5 to 10 min"
_REPRODUCE = "jettison.lab.reproduce"


class Kind(enum.Enum):
    """What an experiment runs on, and so how it is called.

    A benchmark gives results, a part of a paper gives sections and claims.
    """

    PURE = "a benchmark by (), a part by (settings)"
    CASES = "a benchmark by (console, case or None), and yields results"
    ON_SPARK = "by (spark, folder, repetitions or settings), in a session that it shares with others"
    APART = "as `CASES`, or a part as `PURE`; it starts Spark by itself"
    PAIRS = "a benchmark by (console, case or None, pairs), and yields results; it starts Spark by itself"
    SEEDED = "as `PAIRS`, with seeds in place of their number"
    RIVALS = "as `PAIRS`, with names of rivals, the seconds of a run, minutes in all, and earlier results to go on from"

    @property
    def needs_spark(self) -> bool:
        """Whether it needs pyspark and Java."""
        return self not in (Kind.PURE, Kind.CASES)

    @property
    def has_cases(self) -> bool:
        """Whether a benchmark of this kind can run one case alone."""
        return self not in (Kind.PURE, Kind.ON_SPARK)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A benchmark, or a part of a paper; `function` is where it is, as `module:function`.

    `length` is with 5 repetitions or at full size, to the nearest of a few classes; empty where it has not been measured.
    """

    name: str
    length: str
    what: str
    kind: Kind
    function: str

    def load(self) -> Callable[..., Any]:
        module, _, name = self.function.partition(":")
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return function


def _named(package: str, *experiments: tuple[str, str, str, Kind, str]) -> dict[str, Experiment]:
    return {
        name: Experiment(name, length, what, kind, f"{package}.{function}")
        for name, length, what, kind, function in experiments
    }


BENCHMARKS: Mapping[str, Experiment] = _named(
    "jettison.lab.bench",
    ("cost", "45 to 60 min", "what a guard costs and keeps, beside plain", Kind.PAIRS, "cost:cost"),
    ("profile", _FEW, "where the driver's CPU goes", Kind.PAIRS, "profile:profile"),
    ("sharing", _MANY, "20 outputs as a network and as 20 queries", Kind.ON_SPARK, "sharing:sharing"),
    ("concept-mean", _MANY, "group drops before a grouped mean", Kind.ON_SPARK, "concept:grouped_mean"),
    ("concept-median", _MANY, "group drops before a grouped median", Kind.ON_SPARK, "concept:grouped_median"),
    ("group-forms", _FEW, "reading a row's group, by form", Kind.ON_SPARK, "group_forms:group_forms"),
    ("sifter-lookup", _FEW, "rows that a sifter decides a second", Kind.ON_SPARK, "sifter:lookup"),
    ("sifter-completeness", _FEW, "what a sifter keeps of a live stream", Kind.ON_SPARK, "sifter:live_completeness"),
    ("exactness", _SOME, "answers called exact, and if they are", Kind.APART, "exactness:exactness"),
    ("audit", _MANY, "how often bounds hold on real streams", Kind.APART, "audits:audits"),
    ("predictions", "", "errors a dry run foresees, and real ones", Kind.APART, "predictions:predictions"),
    ("settle", _SOME, "exact answers later, beside plain batch", Kind.ON_SPARK, "settle_cost:settle"),
    ("replay", _SOME, "rows that differ as a batch is repeated", Kind.APART, "replay:replay"),
    ("faults", "25 min", "100 runs in which much goes wrong", Kind.SEEDED, "faults:faults"),
    ("scale", "", "what grows, and how fast", Kind.PAIRS, "scale:scale"),
    (
        "endurance",
        "65 min",
        "an hour on Kafka: bound, memory, threads",
        Kind.APART,
        "endurance:endurance",
    ),
    ("harm", "40 min", "rows dropped without need, cold", Kind.APART, "harm:harm"),
    ("controller", _MANY, "a step's time; overloads, simulated", Kind.PURE, "pure:controller"),
    ("coverage", _UNDER_1, "how often bounds hold truth, simulated", Kind.PURE, "pure:coverage"),
    ("coverage-tables", _FEW, "docs/bounds.md, simulated", Kind.CASES, "coverage_tables:tables"),
) | _named(
    "jettison.lab.prove", ("prove", "90 min each", "each workload beside every rival", Kind.RIVALS, "prove:prove")
)
CASES: Mapping[str, Mapping[str, str]] = {
    "endurance": {"hour": "65 min", "ten-minutes": "15 min"},
    "harm": {"": _SOME},
    "prove": {"": "90 min"},
}
"""Lengths of single cases where they are known, by benchmark; without a name, of each."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose claims are checked, part by part, in this order.

    `quick` and `full` are how long all of it takes, empty where that has not been measured; `packages` what its parts need
    besides pyspark. What was settled after a look at figures stands in its `claims.csv`.
    """

    name: str
    title: str
    quick: str
    full: str
    what: str
    parts: Mapping[str, Experiment]
    packages: tuple[str, ...] = ("matplotlib",)


_PAPERS = (
    Paper(
        "aurora",
        "Load shedding in a data stream manager",
        "4 min",
        "16 min",
        "networks: drops where they hurt least",
        _named(
            f"{_REPRODUCE}.aurora",
            ("figures9-10", "", "utility lost under excess load", Kind.PURE, "figures:figures_9_and_10"),
            ("figure11", "", "outputs of unequal load", Kind.PURE, "figures:figure_11"),
            ("figure12", "", "shared boxes", Kind.PURE, "figures:figure_12"),
            ("planners", "", "the planners against the optimum", Kind.PURE, "planners:run"),
            ("live", _SOME, "three outputs at three times the load", Kind.APART, "live:run"),
        ),
    ),
    Paper(
        "concept",
        "Concept-driven load shedding: what holds",
        "4 min",
        "",
        "group drops: nearly every group is kept",
        _named(
            f"{_REPRODUCE}.concept",
            ("simulated", "", "every method on every stream", Kind.PURE, "simulated:simulated"),
            ("drift", "", "groups that come and go", Kind.ON_SPARK, "live:drift"),
            ("crowded", "", "more groups than rows may be kept", Kind.ON_SPARK, "live:crowded"),
        ),
    ),
    Paper(
        "load",
        "Load-aware shedding",
        "6 min",
        "",
        "load-aware: the fewest rows for a short queue",
        _named(
            f"{_REPRODUCE}.load",
            ("figure4", _MANY, "input throughput", Kind.PURE, "figures:figure4"),
            ("figure5", "", "the bound", Kind.PURE, "figures:figure5"),
            ("figure6", "", "the largest cost", Kind.PURE, "figures:figure6"),
            ("figure7", "", "the skew of the keys", Kind.PURE, "figures:figure7"),
            ("figure8", "", "the width of the sketch", Kind.PURE, "figures:figure8"),
            ("figure9", "", "seven phases", Kind.PURE, "series:figure9"),
            ("figure11", "", "the application, simulated", Kind.PURE, "series:figure11"),
            ("corrections", "", "the paper's literal forms, theorem 4.1", Kind.PURE, "figures:corrections"),
            ("utility", "", "what the rows kept are worth", Kind.PURE, "figures:utility"),
            ("speed", "", "time of a decision and of an update", Kind.PURE, "speed:speed"),
            ("spark-figure10", "", "phases on Spark", Kind.APART, "spark_figures:figure10"),
            ("spark-figure11", "", "the application on Spark", Kind.APART, "spark_figures:figure11"),
            ("spark-overhead", "", "cost while nothing is shed", Kind.APART, "spark_overhead:overhead"),
            ("spark-executors", "", "one and two executors", Kind.APART, "spark_figures:executors"),
        ),
        packages=("matplotlib", "numba"),
    ),
    Paper(
        "sifter",
        "Compact shedding filters (ICDE 2007), reproduced",
        "4 min",
        "7 min",
        "range queries: a share per region",
        _named(
            f"{_REPRODUCE}.sifter",
            ("speed", "", "figures 6 and 7, and sizes", Kind.PURE, "speed:speeds"),
            ("pass-rate", "", "rows that pass, of those that may", Kind.PURE, "pass_rate:pass_rate"),
            ("figures", "", "figures 4, 5 and 8 to 10: true QoS", Kind.PURE, "figures:figures"),
        ),
    ),
    Paper(
        "window",
        "Window drops: fewer answers, every one of them exact",
        "6 min",
        "> 30 min",
        "window drops: fewer windows, each exact",
        _named(
            f"{_REPRODUCE}.window",
            ("decisions", "", "share and gaps of the windows dropped", Kind.PURE, "decisions:decisions"),
            ("subset", "20 min", "every answer delivered is exact", Kind.ON_SPARK, "subset:subset"),
            ("figure10", "", "drops in a chain of aggregates", Kind.ON_SPARK, "drop_rates:chain"),
            ("figure11", "", "drops in a shared plan", Kind.ON_SPARK, "drop_rates:shared_plan"),
            ("figures12-13", "", "size and slide of the windows", Kind.ON_SPARK, "drop_rates:windows"),
            ("table4", _MANY, "cost while nothing is dropped", Kind.ON_SPARK, "overhead:idle"),
            ("saved", _FEW, "CPU saved by dropping half", Kind.ON_SPARK, "overhead:saved"),
            ("live", _SOME, "three times the load that fits", Kind.ON_SPARK, "live:overload"),
        ),
    ),
)
PAPERS: Mapping[str, Paper] = {one.name: one for one in _PAPERS}


def listing_of_benchmarks() -> str:
    """One line for each benchmark, short enough for a terminal of 80 columns.

    >>> print(listing_of_benchmarks().splitlines()[0])
    cost                 45 to 60 min what a guard costs and keeps, beside plain
    """
    return "\n".join(f"{one.name:<21}{one.length or '?':<13}{one.what}" for one in BENCHMARKS.values())


def listing_of_papers() -> str:
    """One line for each paper, and one for each of its parts, with the length at full size.

    >>> _, paper, part, *_ = listing_of_papers().splitlines()
    >>> print(paper)
    aurora    4 min    16 min    networks: drops where they hurt least
    >>> part.split(maxsplit=2)
    ['figures9-10', '?', 'utility lost under excess load']
    """
    lines = [f"{'':<10}{'quick':<9}full"]
    for paper in _PAPERS:
        lines.append(f"{paper.name:<10}{paper.quick:<9}{paper.full or '?':<10}{paper.what}")
        lines += [f"  {part.name:<17}{part.length or '?':<12}{part.what}" for part in paper.parts.values()]
    return "\n".join(lines)
