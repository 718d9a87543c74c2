"""Finds counts and sums that take no notice of the rows that were dropped: they come out too small."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from jettison.spark.explained import OURS, Node, in_words, lists, split

_ADDS_UP = re.compile(r"\b(count|sum|count_if|approx_count_distinct)\(")
_SUM = re.compile(r"\bsum\(")
_HANDS_ON = " AS jt_weight#"


def unweighted(plan: Sequence[Node], guards: Collection[str], *, every_row_stays: bool = False) -> list[str]:
    """Plain counts and sums over guarded rows, in Spark's words.

    A result that is made of `jt_weight` is right, and so are all of an aggregate that hands it on. Beside a sum of weights
    a count tells how many rows were kept; a plain sum is as wrong as elsewhere. Only the first aggregates behind a guard
    are looked at: those above them may well add up estimates.

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
    for node in plan:
        behind = node.below - {node}
        under = [each.text for each in plan if each in behind]
        is_first = not any(text.startswith("~Aggregate") for text in under)
        if not (node.text.startswith("~Aggregate") and is_first and any(g in text for g in guards for text in under)):
            continue
        others = [result for result in lists(node.text)[-1] if OURS not in result]  # behind the keys, if there are any
        if any(_HANDS_ON in result for result in others):
            continue
        weight = _weight(under)
        adds = _SUM if any(_SUM.search(each) and weight.search(each) for each in others) else _ADDS_UP
        plain = [result for result in others if adds.search(result) and not weight.search(result)]
        found += [result for result in plain if not (every_row_stays and result.startswith("count(1)"))]
    return list(map(in_words, found))


def _weight(under: Sequence[str]) -> re.Pattern[str]:
    """Finds `jt_weight` and columns that are made of it, as the two sides of a join have them."""
    names = r"\bjt_weight#"
    for text in reversed(under):  # from the source on
        for made in split(text.partition("[")[2].removesuffix("]")):
            what, _, name = made.rpartition(" AS ")
            if re.search(names, what):
                names += rf"|(?<!\w){re.escape(name.partition('#')[0])}#"
    return re.compile(names)
