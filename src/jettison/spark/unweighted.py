"""Finds counts and sums that take no notice of the rows that were dropped: they come out too small."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from jettison.spark.explained import Node, below, split

_ADDS_UP = re.compile(r"\b(count|sum|count_if|approx_count_distinct)\(")
_OURS = "scalar-subquery#"  # in every answer with bounds: where it looks up whether rows are missing
_USES_WEIGHT = re.compile(r"\bsum\(.*_weight#| AS jt_weight#")  # of a join: left_weight, right_weight
_EXPRESSION_ID = re.compile(r"#\d+L?")


def unweighted(plan: Sequence[Node], guards: Collection[str], *, every_row_stays: bool = False) -> list[str]:
    """Plain counts and sums over guarded rows, in Spark's words.

    Where a query adds up `jt_weight` itself, or hands it on, it knows what it does. Only the first aggregates behind a
    guard are looked at: those above them may well add up estimates.

    Parameters
    ----------
    plan
        The analyzed plan of a running query.
    guards
        Texts that only the guards contain.
    every_row_stays
        Dropped rows stay, emptied, to be counted: `count(1)` is right.
    """
    found: list[str] = []
    for place, node in enumerate(plan):
        under = [plan[each].text for each in below(plan, place) - {place}]
        is_first = not any(text.startswith("~Aggregate") for text in under)
        if not (node.text.startswith("~Aggregate") and is_first and any(g in text for g in guards for text in under)):
            continue
        results = split(split(node.text.removeprefix("~Aggregate "))[-1][1:-1])  # behind the keys, if there are any
        others = [result for result in results if _OURS not in result]
        if not any(_USES_WEIGHT.search(result) for result in others):
            plain = [result for result in others if _ADDS_UP.search(result)]
            found += [result for result in plain if not (every_row_stays and result.startswith("count(1)"))]
    return [_EXPRESSION_ID.sub("", result) for result in found]
