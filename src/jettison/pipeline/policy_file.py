"""The policy of a pipeline file: the settings of each, under the names that its class has in Python, which checks them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from pyarrow import dataset

from jettison.errors import InvalidInput, refuse
from jettison.pipeline.reading import meaning
from jettison.policies import ConceptDrop, Policy, UniformDrop, WindowDrop
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter
from jettison.runtime.chooser import Auto
from jettison.source.space import Attribute

Names = str | tuple[str, ...]
"""A name or several; `each` makes them several."""
Length = str | float
Lengths = Length | tuple[Length, ...]
MOST_SAMPLED = 100_000
"""Rows of a sample that are used."""


def each(names: Names) -> tuple[str, ...]:
    """The names, also where there is one.

    >>> each("zone"), each(("zone", "hour"))
    (('zone',), ('zone', 'hour'))
    """
    return (names,) if isinstance(names, str) else names


class PolicyFile(Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind", omit_defaults=True):
    """What to drop."""

    @property
    def whole_windows(self) -> bool:
        """Whether windows are dropped whole, so that every answer that comes out is exact."""
        return False

    @property
    def network(self) -> NetworkFile | None:
        """The settings of a network, whose outputs say what they are worth; `None` where rows go at the inputs alone."""
        return None

    def made(self, graph: QueryGraph) -> Policy | Auto:
        """The policy itself, or what it is chosen by; its class refuses what is wrong with the settings."""
        raise NotImplementedError

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are not left out, as the class in Python takes them."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}

    def _require(self, *names: str) -> None:
        """Refuse what the policy cannot do without, and what no box says either."""
        for name in (one for one in names if getattr(self, one) is None):
            hint = f"write {meaning(type(self), name)}; or let exactly one box have `window`, and `group`"
            refuse(f"`{name}` must be given", "none", where=f"policy {self.__struct_config__.tag}", hint=hint)


class UniformFile(PolicyFile, tag="uniform", frozen=True):
    """Rows are dropped at random: unbiased answers, with bounds."""

    def made(self, graph: QueryGraph) -> Policy:
        return UniformDrop()


class WindowFile(PolicyFile, tag="window", frozen=True):
    """Whole windows are dropped: fewer answers, each of them exact."""

    time: Annotated[str | None, Meta(description="column of the windows; by default that of the box with a window")] = (
        None
    )
    window: Annotated[Lengths | None, Meta(description="5 seconds, or [size, slide]; by default the box's")] = None
    max_gap: Annotated[int | None, Meta(description="most windows in a row that may be missing")] = None
    run: Annotated[int | None, Meta(description="least length of a run of dropped windows")] = None

    @property
    def whole_windows(self) -> bool:
        return True

    def made(self, graph: QueryGraph) -> Policy:
        self._require("time", "window")
        return WindowDrop(**self.given)


class ConceptFile(PolicyFile, tag="concept", frozen=True):
    """Large groups are thinned, small ones kept whole while the budget allows it."""

    group: Annotated[Names | None, Meta(description="what the query groups by; by default as the box does")] = None
    time: Annotated[str | None, Meta(description="event time; by default that of the box with a window")] = None
    window: Annotated[Lengths | None, Meta(description="5 seconds, or [size, slide]; by default the box's")] = None
    rows: Annotated[int | None, Meta(description="most rows of a window to process")] = None
    error: Annotated[float | None, Meta(description="relative error of a group's mean that is enough, as 0.05")] = None
    confidence: Annotated[float | None, Meta(description="share of groups that meet the error")] = None
    variation: Annotated[float | None, Meta(description="coefficient of variation within a group")] = None
    value: Annotated[str | None, Meta(description="value that is aggregated, from which the error follows")] = None
    min_rows: Annotated[float | None, Meta(description="rows below which a group is not thinned")] = None
    strict: Annotated[bool | None, Meta(description="a value for every group comes before the latency")] = None
    exact_counts: Annotated[bool | None, Meta(description="dropped rows are still counted, group by group")] = None

    def made(self, graph: QueryGraph) -> Policy:
        self._require("group", "time", "window")
        return ConceptDrop(**self.given)


class PriorityFile(PolicyFile, tag="priority", frozen=True):
    """What weighs least goes first."""

    priorities: Annotated[dict[str, float], Meta(description="weight by predicate: {\"tier = 'gold'\": 2}")]
    least: Annotated[float | None, Meta(description="share of each level that is kept while possible")] = None

    def made(self, graph: QueryGraph) -> Policy:
        return PriorityDrop(**self.given)


_CHOSEN: dict[type[Policy], tuple[str, ...]] = {
    WindowDrop: ("time", "window"),
    PriorityDrop: ("priorities",),
    ConceptDrop: ("group", "time", "window"),
}


class AutoFile(PolicyFile, tag="auto", frozen=True):
    """The rules of the README choose when the query starts, by what is said here and what is on record."""

    group: Annotated[
        Names | None, Meta(description="what the query groups by; by default as a box that reads inputs")
    ] = None
    time: Annotated[str | None, Meta(description="event time; by default that of the box with a window")] = None
    window: Annotated[Lengths | None, Meta(description="5 seconds, or [size, slide]; by default the box's")] = None
    whole_windows: Annotated[bool, Meta(description="a missing window is better than a wrong number")] = False
    priorities: Annotated[dict[str, float] | None, Meta(description="weight by predicate, as of priority")] = None
    record: Annotated[str | None, Meta(description="checkpoint of another run, such as a dry run, to go by")] = None

    def made(self, graph: QueryGraph) -> Auto:
        known = self.given
        for policy, names in _CHOSEN.items():  # whichever is chosen later, what is wrong is said now
            if set(names) <= set(known):
                policy(**{name: known[name] for name in names})
        return Auto(**known)


class AttributeFile(Struct, forbid_unknown_fields=True, frozen=True):
    """One dimension of the data: numbers between two others, or a few texts."""

    low: Annotated[float | None, Meta(description="the smallest value")] = None
    high: Annotated[float | None, Meta(description="the largest value")] = None
    whole: Annotated[bool, Meta(description="whether only whole numbers occur")] = False
    values: Annotated[tuple[str, ...], Meta(description="[tech, food], for texts")] = ()

    def made(self, name: str) -> Attribute:
        if self.values:
            return Attribute.category(name, self.values)
        if self.low is None or self.high is None:
            expected, hint = "an attribute must have `low` and `high`, or `values`", "write {low: 0, high: 100}"
            refuse(expected, "neither", where=f"attribute {name!r}", hint=hint)
        return Attribute(name, self.low, self.high, whole=self.whole)


class SifterFile(PolicyFile, tag="sifter", frozen=True):
    """Rows that few of many standing range queries want go first."""

    attributes: Annotated[dict[str, AttributeFile], Meta(description="{price: {low: 0, high: 100}}")]
    queries: Annotated[dict[str, str], Meta(description="{expensive: price > 90}")]
    sample: Annotated[str, Meta(description="a file with rows of the stream: .parquet, .csv or .json")]
    weights: Annotated[dict[str, float], Meta(description="importance of queries, 1 where not given")] = {}
    slopes: Annotated[dict[str, float], Meta(description="quality lost per completeness lost, 1 where not given")] = {}
    regions: Annotated[int | None, Meta(description="granularity")] = None
    fairness: Annotated[float | None, Meta(description="largest difference between shares dropped")] = None
    partitioning: Annotated[str | None, Meta(description="auto, grid, data, query or qdpart")] = None
    outside: Annotated[str | None, Meta(description="keep or drop what lies outside of all attributes")] = None
    reserve: Annotated[float | None, Meta(description="share of the rows kept that is taken from all alike")] = None
    sample_every: Annotated[int | None, Meta(description="one row in so many is sampled while it runs")] = None
    sample_size: Annotated[int | None, Meta(description="how many of the newest of these count")] = None
    drift: Annotated[float | None, Meta(description="change of the budget that calls for new regions")] = None

    def made(self, graph: QueryGraph) -> Policy:
        attributes = [one.made(name) for name, one in self.attributes.items()]
        each: dict[str, Any] = {}
        for name in ("weights", "slopes"):
            if given := getattr(self, name):
                _require_queries(name, given, self.queries)
                each[name] = [given.get(query, 1.0) for query in self.queries]
        queries = RangeQueries(attributes, self.queries, **each)
        own = ("attributes", "queries", "sample", "weights", "slopes")
        settings = {name: value for name, value in self.given.items() if name not in own}
        return Sifter(queries, _sample(self.sample, list(self.attributes)), **settings)


class NetworkFile(PolicyFile, tag="network", frozen=True):
    """Rows are dropped where the outputs lose least, by what their `qos` says."""

    value: Annotated[str, Meta(description="column that value graphs speak of")] = "value"
    integral_values: Annotated[
        bool | None, Meta(description="whether that column holds whole numbers only; as its type says, if left out")
    ] = None
    semantic: Annotated[bool, Meta(description="whether to drop by value")] = False

    @property
    def network(self) -> NetworkFile:
        return self

    def made(self, graph: QueryGraph) -> Policy:
        return NetworkDrop(graph, semantic=self.semantic, column=self.value)


AnyPolicy = UniformFile | AutoFile | WindowFile | ConceptFile | PriorityFile | SifterFile | NetworkFile
KINDS: dict[str, type[PolicyFile]] = {
    "uniform": UniformFile,
    "auto": AutoFile,
    "window": WindowFile,
    "concept": ConceptFile,
    "priority": PriorityFile,
    "sifter": SifterFile,
    "network": NetworkFile,
}


def _require_queries(name: str, given: dict[str, float], queries: dict[str, str]) -> None:
    if unknown := sorted(set(given) - set(queries)):
        hint = f"one of {', '.join(queries)}"
        refuse(f"`{name}` must be of queries that are given", ", ".join(unknown), hint=hint)


def _sample(path: str, columns: list[str]) -> dict[str, Any]:
    """Rows of a file, column by column: all, or as many from anywhere in it, for its order may follow their values."""
    try:
        file = dataset.dataset(path, format=path.rpartition(".")[2])
        count = file.count_rows()
        places = np.random.default_rng(0).choice(count, min(count, MOST_SAMPLED), replace=False, shuffle=False)
        rows = file.take(np.sort(places), columns=columns)
    except (OSError, ValueError, LookupError) as error:
        hint = f"a file of {', '.join(columns)} that ends in .parquet, .csv or .json"
        said = " ".join(str(error).split())[:200]
        refuse("`sample` must name a file of rows", f"{path!r} ({said})", hint=hint, error=InvalidInput, cause=error)
    return {name: rows.column(name).to_numpy() for name in columns}
