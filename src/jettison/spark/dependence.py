"""Whether rows that share one decision can meet in one group, read from the plan that Spark executes.

Bounds take rows to be kept independently of each other. An operator between the guard and the aggregate that makes
several rows of one (`explode`, a join with several partners) breaks that: the bounds of such answers are too short.

What cannot be cleared is named: a plan that this module does not understand is called dependent, not independent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from jettison.spark.drop_point import PLAN_METRIC, WEIGHT
from jettison.spark.explained import Node, attributes, in_words, lists, split
from jettison.spark.network_rows import OUTPUT

_KEYS = re.compile(r"keys=(\[.*\]), functions=", re.DOTALL)
_RENAMED = re.compile(r"#(\d+)L?(?:-T\d+ms)? AS [\w.`]+#(\d+)")
# Operators with one row out for each row in; none of these names begins the name of another operator that has more.
_KEEPS_ROWS = re.compile(
    r"(Project|Exchange|BroadcastExchange|ReusedExchange|AQEShuffleRead|\w*QueryStage|AdaptiveSparkPlan|InputAdapter|Sort"
    r"|EventTimeWatermark|CollectMetrics|ColumnarToRow|RowToColumnar|Coalesce|Window|WindowInPandas|ArrowWindowPython"
    r"|ArrowEvalPython|BatchEvalPython|MapElements|SerializeFromObject|DeserializeToObject|WriteFiles)\b"
)
# Neither limits nor `dropDuplicates` are among these: which rows they let pass depends on the rows that came before, and
# so on those that were dropped. With a watermark too: what a dropped row would have held back may hold back others.
_LOSES_ROWS = re.compile(r"(Filter|Sample [^,]+, [^,]+, false|WriteToDataSourceV2|Execute|StateStore\w*)\b")
_JOIN = re.compile(r"\w*Join\b|CartesianProduct")
_KEEPS_LEFT = re.compile(r", (LeftSemi|LeftAnti|ExistenceJoin)\b")
_WINDOW = "named_struct(start, "
_PLAN_READ = f"CollectMetrics {PLAN_METRIC}"
_OUTPUT = re.compile(rf"Project \[(\d+) AS {OUTPUT}#")


def multipliers(plan: Sequence[Node], mark: str, ids: Collection[str] = ()) -> list[str] | None:
    """What may make several rows of one between a guard and the answers behind it; empty if nothing does.

    All operators are named that are not known to do without (`explode` and kin, functions over partitions, joins, a
    union of a guard with itself), unless

    - they tell their copies apart and the aggregate groups by that, as sliding windows and grouping sets do;
    - a join shows each row of the guarded side once: a semi join, or a join with a side that is grouped by the join key;
    - an aggregate by `ids` puts the copies together again, and the next one groups by all of its other keys.

    Parameters
    ----------
    plan
        The plan that Spark executes.
    mark
        Text that only the guard's filter contains, `DropPoint.kept_mark`; `DropPoint.metric` where rows are observed.
    ids
        Columns that identify a row for the guard.

    Returns
    -------
    list of str or None
        Operators, in words of the plan. `None` where the plan does not tell, because the guard is not in it.
    """
    guards = [node for node in plan if mark in node.text]
    if not guards:
        return None
    found: dict[str, None] = {}
    for guard in guards:
        texts = guard.texts_below
        path = _Path(tuple(frozenset().union(*(_named(text, name) for text in texts)) for name in ids))
        found |= dict.fromkeys(_climb(guard, path, frozenset(guards)))
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


def _climb(node: Node, path: _Path, guards: frozenset[Node]) -> Iterator[str]:
    if not node.parents:  # rows leave the query as they are; who aggregates them elsewhere meets all copies
        yield from (copies.by for copies in (*path.loose, *path.joined))
    for above in node.parents:
        if "Aggregate(" in above.text:
            keys = _keys(above)
            if path.ids and all(id & keys for id in path.ids):
                rest = keys - frozenset().union(*path.ids, _named(above.text, WEIGHT))  # all copies of a row have one
                together = replace(path, loose=(), joined=(*path.joined, *path.loose), keys=rest)
                yield from _climb(above, together, guards)
                continue
            yield from (copies.by for copies in path.loose if not copies.tell & keys)
            yield from (copies.by for copies in path.joined if not path.keys <= keys)
            continue
        copies = _copies(above, node, guards)
        higher = path if copies is None else replace(path, loose=(*path.loose, copies))
        yield from _climb(above, _renamed(higher, above.text), guards)


def _copies(node: Node, child: Node, guards: frozenset[Node]) -> _Copies | None:
    words = in_words(node.text)[:80]
    if _JOIN.match(node.text):
        return None if _shows_once(node, child) else _Copies(words)
    if node.text.startswith("Expand"):
        return _Copies(words, _telling(node.text))
    if node.text.startswith("Union"):
        beside = [other for other in node.children if _output(other) == _output(child)]
        meets = [other for other in beside if guards & other.below]
        return _Copies("Union of a guard with itself") if len(meets) > 1 else None
    return None if _KEEPS_ROWS.match(node.text) or _LOSES_ROWS.match(node.text) else _Copies(words)


def _output(node: Node) -> str | None:
    """The output of a network that these rows belong to: each has a sink of its own, so rows of two never meet."""
    match = _OUTPUT.match(node.text)
    return None if match is None else match[1]


def _shows_once(join: Node, child: Node) -> bool:
    """Whether a join shows each row of this child at most once."""
    if _KEEPS_LEFT.search(join.text):
        return child is join.children[0] and child not in join.children[1:]
    others = [other for other in join.children if other is not child]
    return len(others) == 1 and (_unique(others[0], _join_keys(join.text)) or _is_plan(others[0]))


def _is_plan(node: Node) -> bool:
    """Whether this is what a guard reads, one row: a further guard joins it too."""
    texts = node.texts_below
    return any(text.startswith(_PLAN_READ) for text in texts) and not any(_JOIN.match(text) for text in texts)


def _unique(node: Node, keys: frozenset[str]) -> bool:
    """Whether no two rows agree in all of `keys`, because they were grouped by some of them."""
    if "Aggregate(" in node.text:
        return "partial" not in node.text and _keys(node) <= keys
    steps = _KEEPS_ROWS.match(node.text) or node.text.startswith("Filter")
    return bool(steps) and len(node.children) == 1 and _unique(node.children[0], keys)


def _telling(expand: str) -> frozenset[str]:
    """Outputs of an `Expand` that differ in all copies of a row: numbers that tell them apart, or their windows."""
    found = lists(expand)
    if len(found) != 2:
        return frozenset()
    copies, outputs = [split(one[1:-1]) for one in found[0]], found[1]
    if "more fields" not in expand and any(len(copy) != len(outputs) for copy in copies):
        return frozenset()  # names with commas or brackets: which value belongs to which output is not known
    told: set[str] = set()
    for output, *values in zip(outputs, *copies, strict=False):
        plain = all("#" not in value or value.startswith(_WINDOW) for value in values)
        if plain and "null" not in values and len(set(values)) == len(values):
            told |= attributes(output)
    return frozenset(told)


def _keys(aggregate: Node) -> frozenset[str]:
    match = _KEYS.search(aggregate.text)
    return attributes(match[1]) if match else frozenset()


def _join_keys(join: str) -> frozenset[str]:
    """Attributes of the two lists that must agree; none for joins without such lists."""
    match = re.match(r"\w+ (\[.*?\]), (\[.*?\]), \w", join)
    if match is None or "(" in match[1] + match[2]:  # rows with one key may agree in what is made of it
        return frozenset()
    return attributes(match[1] + match[2])


def _named(text: str, name: str) -> frozenset[str]:
    """Attributes of this whole name: `user-id` and `user id` are not called `id`."""
    return frozenset(re.findall(rf"(?:[\[(,] ?| AS ){re.escape(name)}#(\d+)", text))


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
