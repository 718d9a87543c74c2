"""The subset guarantee over many random cases on real Spark runs."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window.cases import long_case, make_case
from jettison.reproduce.window.subset import run_cases
from jettison.windows.decide import highest_share

_WINDOWS = 1000
_CONSTANT = ((0.4, 10), (0.0, 4))  # share of rows to keep, and the largest gap: one asks for more than the gap allows


def subset(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Run random cases; every delivered answer must be exact, and every other one accounted for."""
    cases = [make_case(1000 * settings.seed + number) for number in range(3 if settings.quick else 200)]
    long_cases = [long_case(settings.seed, *each) for each in _CONSTANT]
    wrong = lost = changed = delivered = missing = shed_cases = 0
    worst_gap, started = -math.inf, time.monotonic()
    deviations: list[float] = []
    done = run_cases(spark, [*long_cases, *cases], folder)
    for number, (case, outcome) in enumerate(done, start=1):
        wrong += len(outcome.wrong)
        lost += len(outcome.lost(case.levels[-1]))
        changed += outcome.changed
        delivered += len(outcome.shed)
        missing += len(outcome.plain) - len(outcome.shed)
        shed_cases += outcome.rows_kept < outcome.rows_seen
        worst_gap = max(worst_gap, outcome.gap - case.max_gap)
        if case.keep is not None:
            wanted = min(1.0 - case.keep, highest_share(case.max_gap))
            deviations.append(abs(outcome.dropped_share(_WINDOWS) - wanted))
        if number % 10 == 0:
            each = (time.monotonic() - started) / number
            settings.say(f"  {number} cases, {each:.1f} s each, {delivered} answers, {wrong} wrong")
    worst_share = float(np.max(deviations))  # not a number where too few windows were decided
    config = {"cases": len(cases), "seed": settings.seed, "answers": delivered, "held back": missing}
    share = "deviation of the dropped share from min(p, B/(B+1)) over 1,000 windows on Spark"
    claims = [
        Claim("subset", "delivered answers that differ from the unshed ones", "none", float(wrong), 0.0, config=config),
        Claim("kept-windows-whole", "answers of kept windows not delivered", "none", float(lost), 0.0, config=config),
        Claim("marks-final", "marks that changed between two plans", "none", float(changed), 0.0, config=config),
        Claim("gap-on-spark", "largest gap minus B", "never exceeds B", float(worst_gap), 0.0, config=config),
        Claim("share-on-spark", share, "both satisfied", worst_share, 0.01, config={"keep and B": _CONSTANT}),
    ]
    rows = [["cases", len(cases)], ["with 1,000 windows and more", len(long_cases)]]
    rows += [["cases that dropped rows", shed_cases], ["answers delivered", delivered]]
    rows += [["answers held back", missing], ["wrong", wrong], ["lost", lost], ["marks changed", changed]]
    return claims, Section("Subset guarantee", table(["", "count"], rows))
