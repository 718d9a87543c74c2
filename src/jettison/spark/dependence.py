"""Whether rows that share one decision can meet in one group, read from the plan that Spark executes.

Bounds take rows to be kept independently of each other. An operator between the guard and the aggregate that makes
several rows of one (`explode`, a join with several partners) breaks that: the bounds of such answers are too short.

What cannot be cleared is named: a plan that this module does not understand is called dependent, not independent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

_ATTRIBUTE = re.compile(r"([\w.`]+)#(\d+)")
_KEYS = re.compile(r"keys=(\[.*\]), functions=", re.DOTALL)
_RENAMED = re.compile(r"#(\d+)\S* AS [\w.`]+#(\d+)")
_LINE = re.compile(r"^(?P<indent>[ :]*(?:[:+]- )?)(?:\*\(\d+\) |\* )?(?P<text>.*)$")
# Operators with one row out for each row in; none of these names begins the name of another operator that has more.
_KEEPS_ROWS = re.compile(
    r"(Project|Exchange|BroadcastExchange|ReusedExchange|AQEShuffleRead|\w*QueryStage|AdaptiveSparkPlan|InputAdapter|Sort"
    r"|EventTimeWatermark|CollectMetrics|ColumnarToRow|RowToColumnar|Coalesce|Window|WindowInPandas|ArrowWindowPython"
    r"|ArrowEvalPython|BatchEvalPython|MapElements|SerializeFromObject|DeserializeToObject|WriteFiles)\b"
)
_LOSES_ROWS = re.compile(
    r"(Filter|Sample|\w*Limit|StreamingDeduplicate\w*|WriteToDataSourceV2|Execute|StateStore\w*)\b"
)
_JOIN = re.compile(r"\w*Join\b|CartesianProduct")
_KEEPS_LEFT = re.compile(r", (LeftSemi|LeftAnti|ExistenceJoin)\b")
_WINDOW = "named_struct(start, "
_WEIGHT = "jt_weight"  # all copies of a row have one
_ROWS_OUT = "number of output rows"
_PLAN = " AS jt_plan#"


@dataclass(slots=True)
class Node:
    """One operator of a physical plan.

    Parameters
    ----------
    text
        As Spark describes it; the name of the operator comes first.
    children, parents
        Positions of the operators that it reads, first the left one, and of those that read it.
    rows
        Rows that left it, where known.
    """

    text: str
    children: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    rows: int | None = None


def plan_of_text(explained: str) -> list[Node]:
    """The plan in the text that `explain` prints, of a DataFrame or of a streaming query that has run a batch."""
    nodes: list[Node] = []
    above: list[tuple[int, int]] = []  # column and position of the operators that the next line may belong to
    begins = True  # whether the next line is the first of a tree, which nothing but its place tells
    for line in explained.rpartition("== Physical Plan ==")[2].splitlines():
        match = _LINE.match(line)
        if match is None or not line.strip() or match["text"].startswith("=="):
            begins = begins or "==" in line
            continue
        column = len(match["indent"])
        if not begins and not match["indent"].endswith("- "):
            nodes[-1].text += f"\n{line}"  # a literal with a line break
            continue
        begins = False
        while above and above[-1][0] >= column:
            above.pop()
        nodes.append(Node(match["text"]))
        if above:
            _connect(nodes, len(nodes) - 1, above[-1][1])
        above.append((column, len(nodes) - 1))
    _connect_reused(nodes)
    return nodes


def plan_of_execution(execution: Mapping[str, Any]) -> list[Node]:
    """The plan of one execution as `/api/v1/applications/<app>/sql/<id>?details=true` gives it, with rows.

    Empty where Spark counted none: beside the execution that ran, a micro-batch has one that did not.
    """
    places = {node["nodeId"]: place for place, node in enumerate(execution["nodes"])}
    nodes = [Node(node.get("desc") or node["nodeName"], rows=_rows_out(node)) for node in execution["nodes"]]
    # The right side of a join has the later number, in the order in which Spark draws the plan.
    for edge in sorted(execution["edges"], key=lambda edge: edge["fromId"]):
        _connect(nodes, places[edge["fromId"]], places[edge["toId"]])
    return [] if all(node.rows is None for node in nodes) else nodes


def multipliers(plan: Sequence[Node], mark: str, ids: Collection[str] = ()) -> list[str] | None:
    """What may make several rows of one between a guard and the answers behind it; empty if nothing does.

    All operators are named that are not known to do without (`explode` and kin, functions over partitions, joins, a
    union of a guard with itself), unless

    - they tell their copies apart and the aggregate groups by that, as sliding windows and grouping sets do;
    - a join shows each row of the guarded side once: a semi join, a join with a side that is grouped by the join key, or
      one whose rows out are exactly its rows in. Fewer rows prove nothing: a join may lose some and double others;
    - an aggregate by `ids` puts the copies together again, and the next one groups by all of its other keys.

    Parameters
    ----------
    plan
        From `plan_of_text`, or from `plan_of_execution` with row counts. These speak of one batch: look at every one.
    mark
        Text that only the guard's filter contains, `DropPoint.kept_mark`; `DropPoint.metric` where rows are observed.
    ids
        Columns that identify a row for the guard.

    Returns
    -------
    list of str or None
        Operators, in words of the plan. `None` where the plan does not tell: the guard is not in it, or let no row pass.
    """
    guards = [place for place, node in enumerate(plan) if mark in node.text]
    if not guards or all(plan[guard].rows == 0 for guard in guards):
        return None
    found: dict[str, None] = {}
    for guard in guards:
        known = _attributes_below(plan, guard)
        path = _Path(tuple(frozenset(known.get(name, ())) for name in ids))
        found |= dict.fromkeys(_climb(plan, guard, path, frozenset(guards)))
    return list(found)


@dataclass(frozen=True, slots=True)
class _Copies:
    """An operator that copies rows, and the attributes in which the copies of one row always differ."""

    by: str
    tell: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Path:
    """What is known on the way up from a guard.

    Parameters
    ----------
    ids
        For each column that identifies a row, its attributes.
    loose
        Operators whose copies are still apart.
    joined, keys
        Operators whose copies were put together again, one row for each of `keys` beside the ids.
    """

    ids: tuple[frozenset[str], ...]
    loose: tuple[_Copies, ...] = ()
    joined: tuple[_Copies, ...] = ()
    keys: frozenset[str] = frozenset()


def _climb(plan: Sequence[Node], place: int, path: _Path, guards: frozenset[int]) -> Iterator[str]:
    if not plan[place].parents:  # rows leave the query as they are; who aggregates them elsewhere meets all copies
        yield from (copies.by for copies in (*path.loose, *path.joined))
    for above in plan[place].parents:
        node = plan[above]
        if "Aggregate(" in node.text:
            keys = _keys(node)
            if path.ids and all(id & keys for id in path.ids):
                rest = keys - frozenset().union(*path.ids, _attributes(node.text, _WEIGHT))
                together = replace(path, loose=(), joined=(*path.joined, *path.loose), keys=rest)
                yield from _climb(plan, above, together, guards)
                continue
            yield from (copies.by for copies in path.loose if not copies.tell & keys)
            yield from (copies.by for copies in path.joined if not path.keys <= keys)
            continue
        copies = _copies(plan, above, place, guards)
        higher = path if copies is None else replace(path, loose=(*path.loose, copies))
        yield from _climb(plan, above, _renamed(higher, node.text), guards)


def _copies(plan: Sequence[Node], place: int, child: int, guards: frozenset[int]) -> _Copies | None:
    node = plan[place]
    words = re.sub(r"#\d+L?(-T\d+ms)?", "", node.text.splitlines()[0])[:80]
    if _JOIN.match(node.text):
        return None if _shows_once(plan, place, child) else _Copies(words)
    if node.text.startswith("Expand"):
        return _Copies(words, _telling(node.text))
    if node.text.startswith("Union"):
        meets = [other for other in node.children if guards & _below(plan, other)]
        return _Copies("Union of a guard with itself") if len(meets) > 1 else None
    return None if _KEEPS_ROWS.match(node.text) or _LOSES_ROWS.match(node.text) else _Copies(words)


def _shows_once(plan: Sequence[Node], place: int, child: int) -> bool:
    """Whether a join shows each row of this child at most once."""
    node = plan[place]
    if _KEEPS_LEFT.search(node.text):
        return child == node.children[0] and child not in node.children[1:]
    others = [other for other in node.children if other != child]
    if len(others) == 1 and _unique(plan, others[0], _join_keys(node.text)):
        return True
    if len(others) == 1 and _is_plan(plan, others[0]):
        return True
    if node.text.startswith("StreamingSymmetric"):  # partners come in later batches too
        return False
    came = _rows_from(plan, child)
    return came is not None and came == node.rows


def _is_plan(plan: Sequence[Node], place: int) -> bool:
    """Whether this is what a guard reads, one row: a further guard joins it too."""
    texts = [plan[below].text for below in _below(plan, place)]
    return any(_PLAN in text for text in texts) and not any(_JOIN.match(text) for text in texts)


def _unique(plan: Sequence[Node], place: int, keys: frozenset[str]) -> bool:
    """Whether no two rows agree in all of `keys`, because they were grouped by some of them."""
    node = plan[place]
    if "Aggregate(" in node.text:
        return "partial" not in node.text and _keys(node) <= keys
    steps = _KEEPS_ROWS.match(node.text) or node.text.startswith("Filter")
    return bool(steps) and len(node.children) == 1 and _unique(plan, node.children[0], keys)


def _rows_from(plan: Sequence[Node], place: int) -> int | None:
    node = plan[place]
    if node.rows is not None:
        return node.rows
    if _KEEPS_ROWS.match(node.text) and len(node.children) == 1:
        return _rows_from(plan, node.children[0])
    return None


def _telling(expand: str) -> frozenset[str]:
    """Outputs of an `Expand` that differ in all copies of a row: numbers that tell them apart, or their windows."""
    lists = _split(expand[expand.index("[") :])
    if len(lists) != 2:
        return frozenset()
    copies, outputs = [_split(one[1:-1]) for one in _split(lists[0][1:-1])], _split(lists[1][1:-1])
    told: set[str] = set()
    for output, *values in zip(outputs, *copies, strict="more fields" not in expand):
        plain = all("#" not in value or value.startswith(_WINDOW) for value in values)
        if plain and "null" not in values and len(set(values)) == len(values):
            told |= _attributes(output)
    return frozenset(told)


def _split(text: str) -> list[str]:
    """Parts between commas that stand outside of all brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _keys(aggregate: Node) -> frozenset[str]:
    match = _KEYS.search(aggregate.text)
    return _attributes(match[1]) if match else frozenset()


def _join_keys(join: str) -> frozenset[str]:
    """Attributes of the two lists that must agree; none for joins without such lists."""
    match = re.match(r"\w+ (\[.*?\]), (\[.*?\]), \w", join)
    if match is None or "(" in match[1] + match[2]:  # rows with one key may agree in what is made of it
        return frozenset()
    return _attributes(match[1] + match[2])


def _attributes(text: str, name: str | None = None) -> frozenset[str]:
    return frozenset(number for found, number in _ATTRIBUTE.findall(text) if name in (None, found))


def _renamed(path: _Path, text: str) -> _Path:
    """The path with what a projection calls by a new name, in addition to the old one."""
    if not text.startswith("Project"):
        return path
    new: dict[str, str] = dict(_RENAMED.findall(text))

    def both(attributes: frozenset[str]) -> frozenset[str]:
        return attributes | {new[one] for one in attributes if one in new}

    return replace(
        path,
        ids=tuple(map(both, path.ids)),
        loose=tuple(replace(copies, tell=both(copies.tell)) for copies in path.loose),
    )


def _attributes_below(plan: Sequence[Node], place: int) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {}
    for below in _below(plan, place):
        for name, number in _ATTRIBUTE.findall(plan[below].text):
            known.setdefault(name, set()).add(number)
    return known


def _below(plan: Sequence[Node], place: int) -> frozenset[int]:
    found, ahead = {place}, [place]
    while ahead:
        for child in plan[ahead.pop()].children:
            if child not in found:
                found.add(child)
                ahead.append(child)
    return frozenset(found)


def _connect(nodes: Sequence[Node], child: int, parent: int) -> None:
    nodes[parent].children.append(child)
    nodes[child].parents.append(parent)


def _connect_reused(nodes: Sequence[Node]) -> None:
    """Let what is used a second time read what it stands for."""
    plan_id = re.compile(r"\[plan_id=(\d+)\]")
    first = {
        match[1]: place
        for place, node in enumerate(nodes)
        if not node.text.startswith("Reused") and (match := plan_id.search(node.text))
    }
    for place, node in enumerate(nodes):
        match = plan_id.search(node.text)
        if node.text.startswith("ReusedExchange") and match and match[1] in first:
            _connect(nodes, first[match[1]], place)


def _rows_out(node: Mapping[str, Any]) -> int | None:
    for metric in node["metrics"]:
        if metric["name"] == _ROWS_OUT:
            return int("".join(filter(str.isdigit, metric["value"])))
    return None
