"""The subset guarantee over many random cases on real Spark runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window.subset import make_case, run_case


def subset(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Run random cases; every delivered answer must be exact, and every other one accounted for."""
    cases = 6 if settings.quick else 200
    wrong = lost = changed = delivered = missing = shed_cases = 0
    worst_gap = -100
    for number in range(cases):
        case = make_case(1000 * settings.seed + number)
        outcome = run_case(spark, case, folder / "case")
        shutil.rmtree(folder / "case")
        wrong += len(outcome.wrong)
        lost += len(outcome.lost(case.levels[-1]))
        changed += outcome.changed
        delivered += len(outcome.shed)
        missing += len(outcome.plain) - len(outcome.shed)
        shed_cases += outcome.rows_kept < outcome.rows_seen
        worst_gap = max(worst_gap, outcome.gap - case.max_gap)
        if number % 10 == 9:
            settings.say(f"  {number + 1} cases, {delivered} answers, {wrong} wrong")
    config = {"cases": cases, "seed": settings.seed, "answers": delivered, "held back": missing}
    claims = [
        Claim("subset", "delivered answers that differ from the unshed ones", "none", float(wrong), 0.0, config=config),
        Claim("kept-windows-whole", "answers of kept windows not delivered", "none", float(lost), 0.0, config=config),
        Claim("marks-final", "marks that changed between two plans", "none", float(changed), 0.0, config=config),
        Claim("gap-on-spark", "largest gap minus B", "never exceeds B", float(worst_gap), 0.0, config=config),
    ]
    rows = [["cases", cases], ["cases that dropped rows", shed_cases], ["answers delivered", delivered]]
    rows += [["answers held back", missing], ["wrong", wrong], ["lost", lost], ["marks changed", changed]]
    return claims, Section("Subset guarantee", table(["", "count"], rows))
