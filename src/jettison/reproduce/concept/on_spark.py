"""What only an engine can tell: groups under drift on real streams, and what shedding by group saves."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from jettison.bench import concept as bench
from jettison.bench.result import Result
from jettison.reproduce.claims import Claim
from jettison.reproduce.concept.live import DriftCase, LiveOutcome, run_case
from jettison.reproduce.report import RunSettings, Section, table
from jettison.spark.session import local_session

_PAPER = {
    "grouped mean": "up to 2.25 times better than no shedding, 95th percentile",
    "exact grouped median": "",
}


def run_spark(settings: RunSettings) -> tuple[list[Claim], list[Section]]:
    """All experiments on a local Spark."""
    claims: list[Claim] = []
    sections: list[Section] = []
    with local_session("jettison reproduce concept") as spark:
        for experiment in (drift, crowded, saved):
            settings.say(f"on Spark: {experiment.__name__}")
            with tempfile.TemporaryDirectory(prefix="jettison-concept-") as scratch:
                more, section = experiment(spark, Path(scratch), settings)
            claims += more
            sections.append(section)
    return claims, sections


def drift(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """New groups, vanishing ones, and the heaviest turning into the rarest, from window to window."""
    outcomes: dict[tuple[bool, int], LiveOutcome] = {}
    windows, batches = (2, 5) if settings.quick else (3, 8)
    for exact_counts in (False, True):
        for number in range(1 if settings.quick else 4):
            case = DriftCase(settings.seed * 100 + number, windows, batches, exact_counts=exact_counts)
            outcomes[exact_counts, number] = run_case(spark, case, folder / f"{exact_counts}{number}")
    config = {"runs": len(outcomes), "windows": windows, "batches_per_window": batches, "groups_per_window": 60}
    missing = sum(len(outcome.missing) for outcome in outcomes.values())
    wrong = sum(len(outcome.miscounted) for (exact, _), outcome in outcomes.items() if exact)
    text, of_counts = (
        "on Spark, under drift: groups missing",
        "on Spark, dropped rows counted: groups with a wrong count",
    )
    claims = [
        Claim("spark-missing", text, "zero missing groups", missing, at_most=0, config=config),
        Claim("spark-counts", of_counts, "", wrong, at_most=0, config=config),
    ]
    rows = [
        ["counted" if exact else "gone", len(one.truth), len(one.missing), one.kept_share, one.error,
         _mean(one, "distance"), _mean(one, "overlap")]
        for (exact, _), one in outcomes.items()
    ]  # fmt: skip
    header = ["dropped rows", "groups and windows", "missing", "rows kept", "mean error", "distance", "overlap"]
    return claims, Section("On Spark: streams under drift", table(header, rows))


def crowded(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """More groups than rows may be kept: all appear with their counts, those without a value say so."""
    groups = 37_500 if settings.quick else 750_000  # a window; with those of the second 50,000 or a million
    case = DriftCase(settings.seed, windows=2, batches=3, groups=groups, rows=2 * groups, share=0.1, exact_counts=True)
    outcome = run_case(spark, case, folder)
    distinct = len({name for _, name in outcome.truth})
    empty = [answer for answer in outcome.answers.values() if answer.mean is None]
    flagged = sum(answer.status == "few rows" for answer in empty)
    bad = len(outcome.missing) + len(outcome.miscounted) + len(empty) - flagged
    config = {"groups": distinct, "kept_share": round(outcome.kept_share, 4), "without_value": len(empty)}
    text = "on Spark, more groups than rows to keep: groups missing, miscounted, or empty without a flag"
    rows = [
        [
            distinct,
            len(outcome.truth),
            outcome.kept_share,
            len(outcome.missing),
            len(outcome.miscounted),
            len(empty),
            flagged,
        ]
    ]
    header = [
        "distinct groups",
        "groups and windows",
        "rows kept",
        "missing",
        "miscounted",
        "without a value",
        "of these flagged",
    ]
    claim = Claim("spark-crowded", text, "", bad, at_most=0, config=config)
    return [claim], Section("On Spark: more groups than the budget has rows", table(header, rows))


def saved(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Task CPU and batch times at 3 % of the rows, against no shedding and against dropping at random."""
    repetitions, batches = (1, 3) if settings.quick else (3, bench.BATCHES)
    results = [
        result
        for query in (bench.grouped_mean, bench.grouped_median)
        for result in query(spark, folder, repetitions, batches=batches)
    ]
    claims = [_claim(result) for result in results if result.bar]
    rows = [[r.name, r.value, r.unit, r.baseline, r.ratio, r.config["kept_share"]] for r in results]
    header = ["what", "ours", "unit", "beside", "ratio", "rows kept"]
    return claims, Section("On Spark: figure 8, what shedding saves", table(header, rows))


def _claim(result: Result) -> Claim:
    query = result.name.split(",")[0]
    words = result.name.replace("by group, counted", "counted").replace("by group", "gone").replace(":", "")
    name = "spark-" + "-".join(words.replace(",", "").split())
    value = float("nan") if result.ratio is None else result.ratio
    text = f"on Spark, {result.name} ({result.config['ratio']})"
    return Claim(name, text, _PAPER[query], value, result.at_most, result.at_least, dict(result.config))


def _mean(outcome: LiveOutcome, field: str) -> float:
    found = [float(str(record[field])) for record in outcome.concepts if _has(record, field)]
    return sum(found) / len(found) if found else float("nan")


def _has(record: Mapping[str, object], field: str) -> bool:
    return field in record and record["rows"] != 1  # the row that closes the stream is no window
