"""Sifters without Spark: construction, lookup, size, and the closed form against a solver."""

from __future__ import annotations

from jettison.bench.result import Result
from jettison.reproduce.sifter import speed

_SEED, _REPETITIONS = 1000, 15


def sifter() -> list[Result]:
    """The figures of `jettison reproduce sifter` on speed and size, alone."""
    measured = (
        speed.construction(_SEED, _REPETITIONS),
        speed.lookups(_SEED, _REPETITIONS),
        speed.construction_of_many(_SEED, _REPETITIONS),
        speed.against_solver(_SEED, _REPETITIONS),
        speed.sizes((_SEED,)),
    )
    config = {"repetitions": _REPETITIONS, "of": "the fastest, in processor time", "seed": _SEED}
    return [
        Result(claim.claim, claim.ours, "", at_most=claim.at_most, at_least=claim.at_least, config=config)
        for claim in speed.claims(*measured, config)
    ]
