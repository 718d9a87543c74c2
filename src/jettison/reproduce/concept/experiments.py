"""The experiments: what is run on which stream, once; figures and claims only read the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context

from jettison.concept.concepts import GroupConcept
from jettison.concept.distance import ConceptShift, shift
from jettison.reproduce.concept import streams
from jettison.reproduce.concept.as_shipped import AsShipped
from jettison.reproduce.concept.borrowing import BorrowOutcome, run_borrowing
from jettison.reproduce.concept.harness import Run, run, run_at
from jettison.reproduce.concept.joins import JoinOutcome, run_joins
from jettison.reproduce.concept.methods import (
    LastWindow,
    Method,
    MovingAverage,
    PaperSetting,
    Reservoirs,
    Strict,
    Uniform,
)
from jettison.reproduce.concept.real_data import real_streams
from jettison.reproduce.concept.streams import Stream

SHARES = (0.02, 0.05, 0.10, 0.25)
BIASES = (0.98, 0.90, 0.75, 0.50)
STEADY_WINDOWS = 25
"""Windows where few would let the seed decide."""
EQUAL_CAPS = "concept, equal caps"
SHIPPED = AsShipped.name
SHIPPED_LARGE = f"{SHIPPED}, 20,000 groups a plan"
SHIPPED_STRICT = f"{SHIPPED}, strict"


@dataclass(frozen=True, eq=False)
class AtSetting:
    """The paper's form at b, Uniform at 1 - b, and other methods at the rows that the paper's form processes."""

    paper: Run
    uniform: Run
    uniform_same_rows: Run
    equal_caps_same_rows: Run
    shipped_same_rows: Run


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that was measured.

    Parameters
    ----------
    generated, real
        The streams.
    equal_rows
        Runs at equal rows processed, by stream, share and method.
    settings
        Runs at the paper's own setting and beside it, by stream and b.
    half
        Uniform at half of the rows, by stream.
    shifts
        Concept shifts between consecutive windows, by stream.
    """

    generated: Sequence[Stream]
    real: Sequence[Stream]
    equal_rows: Mapping[tuple[str, float, str], Run]
    settings: Mapping[tuple[str, float], AtSetting]
    half: Mapping[str, Run]
    shifts: Mapping[str, Sequence[ConceptShift]]
    joins: Sequence[JoinOutcome]
    borrowing: Mapping[str, Sequence[BorrowOutcome]]


def methods(stream: Stream) -> list[Callable[[], Method]]:
    """All methods, each made anew for a run."""
    return [
        Uniform,
        Strict,
        lambda: Strict("concept, proportional", "proportional"),
        lambda: Strict("concept, Neyman", "neyman"),
        lambda: Strict("concept, equal caps, lag of 2 batches", lag=2),
        AsShipped,
        lambda: AsShipped(SHIPPED_LARGE, max_groups=20_000),
        lambda: AsShipped(SHIPPED_STRICT, strict=True),
        Reservoirs,
        lambda: MovingAverage(stream.group_count),
        lambda: LastWindow(stream.group_count),
    ]


def run_all(*, quick: bool, seed: int, say: Callable[[str], None]) -> Results:
    """Run every experiment, several at a time; `quick` takes fewer windows and draws."""
    count = 4 if quick else 12
    generated = [
        streams.taxi_like(seed, count),
        streams.zipf(seed, count),
        streams.cluster_like(seed, count),
        streams.four_classes(seed, count),
        streams.packets(seed, max(30 * count, 240)),  # a ratio of two means near 1 needs many windows
    ]
    real = real_streams(count)
    grouped = [stream for stream in [*generated, *real] if stream.group_count > 1]
    # Few classes and a handful of rows in most: errors of single windows differ by factors, so more of them are taken.
    steady = {"cluster-like": streams.cluster_like(seed, STEADY_WINDOWS)}
    # Processes of their own, not copies of this one: it may have threads by now.
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), get_context("spawn")) as pool:
        say(f"{len(generated)} generated and {len(real)} real streams: all methods at equal rows")
        at_shares = [
            pool.submit(_at_equal_rows, stream, share, seed)
            for stream in [*generated, *real]
            for share in (SHARES if stream.group_count > 1 else (0.01,))
        ]
        at_settings = {
            (s.name, b): pool.submit(_at_setting, steady.get(s.name, s), b, seed)
            for s in grouped
            for b in (BIASES if s is generated[0] else (0.98,))
        }
        half = {stream.name: pool.submit(run, stream, Uniform, 0.5, seed) for stream in grouped}
        joins = pool.submit(run_joins, [0.02, 0.05, 0.10], draws=100 if quick else 500, seed=seed)
        borrowing = {
            s.name: [pool.submit(run_borrowing, s, share, seed=seed) for share in SHARES[1:]] for s in generated[:2]
        }
        runs = [made for future in at_shares for made in future.result()]
        say("the paper's own setting, joins and borrowed estimates")
        return Results(
            generated,
            real,
            {(made.stream, share, made.method): made for share, made in runs},
            {key: future.result() for key, future in at_settings.items()},
            {name: future.result() for name, future in half.items()},
            # Ten largest groups are few: the mean of their change needs more windows than errors do.
            {s.name: shifts_of(s) for s in [streams.taxi_like(seed, STEADY_WINDOWS), *grouped[1:]]},
            joins.result(),
            {name: [future.result() for future in futures] for name, futures in borrowing.items()},
        )


def _at_equal_rows(stream: Stream, share: float, seed: int) -> list[tuple[float, Run]]:
    made = methods(stream) if stream.group_count > 1 else [Uniform, Strict]
    return [(share, run_at(stream, make, share, seed)) for make in made]


def _at_setting(stream: Stream, bias: float, seed: int) -> AtSetting:
    paper = run(stream, PaperSetting, 1.0 - bias, seed)
    return AtSetting(
        paper,
        run(stream, Uniform, 1.0 - bias, seed),
        run(stream, Uniform, paper.processed_share, seed),
        run_at(stream, Strict, paper.processed_share, seed),
        run_at(stream, AsShipped, paper.processed_share, seed),
    )


def shifts_of(stream: Stream) -> list[ConceptShift]:
    """How far consecutive windows lie apart."""
    concepts = [GroupConcept.of(window.groups) for window in stream.windows]
    return [shift(before, after) for before, after in pairwise(concepts)]
