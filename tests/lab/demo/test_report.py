"""The demo's document keeps its promised keys, and its summary and picture follow from it. Starts no Spark."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo_runs import PHASES, run_with
from jettison.lab.demo import report
from jettison.lab.demo.verdict import Answers, Kept, Latency

PLAIN = Latency(
    bound_s=10.0,
    latency_peak_s=60.0,
    back_under_bound_s=None,
    over_bound_share=1.0,
    over_bound_batches=7,
    over_bound_rows=70_000,
    judged_batches=3,
    latency_p50_s=30.0,
    latency_p95_s=55.0,
    latency_worst_s=60.0,
    latency_growth_s_per_s=0.7,
    unanswered_rows=9_000,
    feed_late_s=0.02,
)
SHED = Latency(
    bound_s=10.0,
    latency_peak_s=12.5,
    back_under_bound_s=7.25,
    over_bound_share=0.17,
    over_bound_batches=1,
    over_bound_rows=1_500,
    judged_batches=20,
    latency_p50_s=6.0,
    latency_p95_s=8.5,
    latency_worst_s=9.5,
    latency_growth_s_per_s=0.0,
    unanswered_rows=0,
    feed_late_s=0.03,
)
ANSWERS = Answers(
    windows=5, answers=120, exact_answers=60, mean_relative_error=0.02, bounds_coverage=0.95, groups_missing=0
)


def document(
    *,
    plain: Latency = PLAIN,
    shed: Latency = SHED,
    answers: Answers = ANSWERS,
    overload: float = 3.0,
    kept: float | None = 0.3,
) -> dict[str, object]:
    return report.to_document(
        capacity_rows_per_s=123_456.7,
        overload=overload,
        plain=plain,
        shed=shed,
        kept=Kept(kept, kept_fraction_variation=0.05, batches_not_counted=0),
        answers=answers,
    )


def printed(document: dict[str, object]) -> str:
    console = Console(file=io.StringIO(), width=80)
    report.summary(document, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def cells(text: str, row: str) -> list[str]:
    """The two cells behind a row's name."""
    (line,) = [line for line in text.splitlines() if line.startswith("│") and line.split("│")[1].strip() == row]
    return [cell.strip() for cell in line.split("│")[2:4]]


def test_the_promised_keys_survive_the_way_through_json() -> None:
    found = json.loads(json.dumps(document(), allow_nan=False))
    assert found["latency_bound_s"] == 10.0
    assert found["plain"]["latency_p95_s"] == 55.0
    promised = {
        "latency_p95_s": 8.5,
        "kept_fraction": 0.3,
        "ideal_kept_fraction": pytest.approx(1 / 3),
        "mean_relative_error": 0.02,
        "bounds_coverage": 0.95,
        "groups_missing": 0,
    }
    assert {key: found["shed"][key] for key in promised} == promised


def test_at_best_everything_is_kept_where_there_is_no_overload() -> None:
    assert document(overload=0.5)["shed"]["ideal_kept_fraction"] == 1.0  # type: ignore[index]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {},
            "The latency bound of 10 s was held with Jettison: for good from 7.2 s after the step on (17% of the overload; "
            "up to 25% count as held), by 20 batches.",
        ),
        (
            {"back_under_bound_s": 29.0, "over_bound_share": 0.69, "latency_peak_s": 26.0},
            "The latency bound of 10 s was broken, with a peak of 26.0 s; with Jettison latency came back under the bound "
            "after 29.0 s (69% of the overload; up to 25% count as held).",
        ),
        (
            {"back_under_bound_s": None, "over_bound_share": 1.0},
            "The latency bound of 10 s was NOT held with Jettison: latency did not come back under it.",
        ),
        (
            {"latency_p95_s": 10.6},
            "The latency bound of 10 s was NOT held with Jettison: after the first 3 batches, 95 % of rows were within "
            "10.6 s; it came back under the bound after 7.2 s.",
        ),
        (
            {"judged_batches": 4},
            "Whether the latency bound of 10 s was held with Jettison is not known: after the first 3 batches of the "
            "overload there were 4, and it takes 5. Make the second phase longer with --seconds.",
        ),
    ],
)
def test_the_last_sentence_says_whether_the_bound_was_held(change: dict[str, Any], said: str) -> None:
    assert " ".join(printed(document(shed=replace(SHED, **change))).split()).endswith(said)


def test_the_table_has_the_peak_and_the_time_over_the_bound_beside_the_judged_figures() -> None:
    text = printed(document())
    assert cells(text, "row latency at its peak") == ["60.0 s", "12.5 s"]
    assert cells(text, "for good under the bound after") == ["not at all", "7.2 s"]
    assert cells(text, "batches over it from the step on") == ["7", "1"]
    assert cells(text, "rows over it from the step on") == ["70,000", "1,500"]
    assert cells(text, "batches judged, after the first 3") == ["3", "20"]
    assert cells(text, "their latency, 95 % of rows within") == ["55.0 s", "8.5 s"]
    assert cells(text, "deviation of that share over mean") == ["", "0.05"]
    found = document()["shed"]
    assert (found["latency_peak_s"], found["back_under_bound_s"], found["over_bound_share"]) == (12.5, 7.25, 0.17)  # type: ignore[index]
    assert found["held"] == "yes"  # type: ignore[index]
    assert document()["held_needs"] == {"over_bound_share_at_most": 0.25, "judged_batches_at_least": 5}


def test_without_a_batch_to_judge_there_are_no_judged_figures() -> None:
    unjudged = replace(PLAIN, judged_batches=0, latency_p50_s=None, latency_p95_s=None, latency_worst_s=None)
    text = printed(document(plain=unjudged))
    assert (
        cells(text, "their latency, 95 % of rows within")[0]
        == cells(text, "their latency, worst")[0]
        == "no batch ended"
    )
    text = printed(document(shed=replace(unjudged, back_under_bound_s=0.0, over_bound_share=0.0), kept=None))
    assert cells(text, "rows kept")[1] == "no batch ended"
    assert "is not known" in text
    saved = json.loads(json.dumps(document(shed=unjudged, kept=None), allow_nan=False))
    assert saved["shed"]["judged_batches"] == 0


def test_a_run_that_shed_nothing_has_no_errors_to_speak_of() -> None:
    nothing = replace(ANSWERS, answers=0, mean_relative_error=None, bounds_coverage=None)
    text = printed(document(answers=nothing))
    assert text.count("no answer from shed rows") == 2
    assert "of 0" not in text
    assert json.loads(json.dumps(document(answers=nothing)))["shed"]["bounds_coverage"] is None


def test_rows_of_a_batch_that_did_not_end_are_told_beside_the_share_kept() -> None:
    minute = {"first_batch_s": 30.0, "latency_p95_s": 55.0, "latency_worst_s": 60.0}
    shares = {"kept_fraction": 1.0, "kept_below_capacity": 1.0, "unanswered_rows": 9_876}
    text = printed(document() | {"first_minute": {"plain": minute | shares, "shed": minute | shares}})
    assert cells(text, "rows kept in all (*)") == ["100.0%", "100.0%"]
    assert cells(text, "rows in no batch that ended") == ["9,876", "9,876"]


def test_the_picture_is_written_for_a_query_that_keeps_up_and_one_that_does_not(tmp_path: Path) -> None:
    falls_behind = run_with([1.0] * 10 + [3.0, 9.0, 27.0, 81.0], name="plain", kept=1.0)
    report.picture((falls_behind, run_with([1.0] * 60, name="shed")), PHASES, 10.0, tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
