"""Sifters without Spark: construction, lookup, size, and the closed form against a solver."""

from __future__ import annotations

from jettison.lab.bench.result import Result
from jettison.lab.reproduce.sifter import speed


def sifter() -> list[Result]:
    """The figures of `jettison reproduce sifter` on speed and size, alone."""
    return [
        Result(claim.claim, claim.ours, "", at_most=claim.at_most, at_least=claim.at_least, config=claim.config)
        for claim in speed.measured((1000,), 15)
    ]
