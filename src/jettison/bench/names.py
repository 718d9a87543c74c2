"""The benchmarks by name: what each measures, and roughly how long it takes. Imports no Spark, so that help is quick."""

from __future__ import annotations

from collections.abc import Mapping

_UNDER_1, _FEW, _SOME, _MANY = "under 1 min", "1 to 3 min", "2 to 5 min", "5 to 10 min"

BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "idle-json": (_MANY, "a guard that drops nothing, on the demo's query"),
    "idle-native": (_SOME, "the same on a bare native aggregate"),
    "dropped-row": (_SOME, "a dropped row beside a kept one"),
    "plan-read": (_SOME, "what the guard adds to a tiny micro-batch"),
    "sharing": (_MANY, "20 outputs as a network and as 20 queries"),
    "concept-mean": (_MANY, "group drops before a grouped mean"),
    "concept-median": (_MANY, "group drops before a grouped median"),
    "sifter-lookup": (_FEW, "rows that a sifter decides a second"),
    "sifter-matching": (_FEW, "1,000 range queries matched at once"),
    "sifter-completeness": (_FEW, "what a sifter keeps of a live stream"),
    "exactness": (_SOME, "answers called exact, and those of them that are wrong"),
    "replay": (_SOME, "rows that differ when a batch is repeated"),
    "controller": (_UNDER_1, "a step's time; overloads, simulated"),
    "coverage": (_UNDER_1, "how often bounds hold the truth, simulated"),
    "sifter": (_UNDER_1, "a sifter's construction and size, without Spark"),
    "harm": ("20 min", "rows dropped without need, from cold processes"),
}
"""How long it takes on two cores with 5 repetitions, to the nearest of a few classes, and what is measured."""


def listing() -> str:
    """One line for each benchmark, as help shows them.

    >>> print(listing().splitlines()[0])
    idle-json            5 to 10 min  a guard that drops nothing, on the demo's query
    """
    return "\n".join(f"{name:<21}{length:<13}{what}" for name, (length, what) in BENCHMARKS.items())
