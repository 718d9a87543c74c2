"""The demo's document keeps its promised keys, and its summary and picture follow from it. Starts no Spark."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from demo_runs import PHASES, run_with
from jettison.demo import report
from jettison.demo.verdict import Answers, Latency

PLAIN = Latency(3, p50_s=30.0, p95_s=55.0, worst_s=60.0, growth_s_per_s=0.7, unanswered_rows=9_000, feed_late_s=0.02)
SHED = Latency(20, p50_s=6.0, p95_s=8.5, worst_s=9.5, growth_s_per_s=0.0, unanswered_rows=0, feed_late_s=0.03)
ANSWERS = Answers(
    windows=5, answers=120, exact_answers=60, mean_relative_error=0.02, bounds_coverage=0.95, groups_missing=0
)


def document(
    *, shed: Latency = SHED, answers: Answers = ANSWERS, overload: float = 3.0, kept: float | None = 0.3
) -> dict[str, object]:
    return report.to_document(
        bound_s=10.0,
        capacity_rows_per_s=123_456.7,
        overload=overload,
        plain=PLAIN,
        shed=shed,
        kept_fraction=kept,
        kept_fraction_variation=0.05,
        batches_not_counted=0,
        answers=answers,
    )


def printed(document: dict[str, object]) -> str:
    console = Console(file=io.StringIO(), width=140)
    report.summary(document, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_promised_keys_survive_the_way_through_a_file(tmp_path: Path) -> None:
    report.save(document(), tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
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


@pytest.mark.parametrize(("p95_s", "said"), [(10.0, "was held"), (10.01, "was NOT held")])
def test_the_summary_says_whether_the_bound_was_held(p95_s: float, said: str) -> None:
    assert f"The latency bound of 10 s {said} with Jettison." in printed(document(shed=replace(SHED, p95_s=p95_s)))


def test_without_a_batch_to_judge_nobody_says_that_the_bound_was_held() -> None:
    unjudged = Latency(0, p50_s=None, p95_s=None, worst_s=None, growth_s_per_s=0.0, unanswered_rows=0, feed_late_s=0.0)
    text = printed(document(shed=unjudged, kept=None))
    assert "was held with Jettison is not known: the overload had no batch after its first 3." in text
    assert "longer with --seconds." in text
    assert text.count("no batch to judge") == 3  # two latencies and the share kept
    assert json.loads(json.dumps(document(shed=unjudged, kept=None), allow_nan=False))["shed"]["judged_batches"] == 0


@pytest.mark.parametrize(("p95_s", "said"), [(10.0, "is not known"), (10.01, "was NOT held")])
def test_rows_that_wait_can_break_the_bound_but_not_show_that_it_was_held(p95_s: float, said: str) -> None:
    assert said in printed(document(shed=replace(SHED, judged_batches=0, p95_s=p95_s)))


def test_a_run_that_shed_nothing_has_no_errors_to_speak_of() -> None:
    nothing = replace(ANSWERS, answers=0, mean_relative_error=None, bounds_coverage=None)
    text = printed(document(answers=nothing))
    assert text.count("nothing was shed") == 2
    assert json.loads(json.dumps(document(answers=nothing)))["shed"]["bounds_coverage"] is None


def test_the_picture_is_written_for_a_query_that_keeps_up_and_one_that_does_not(tmp_path: Path) -> None:
    falls_behind = run_with([1.0] * 10 + [3.0, 9.0, 27.0, 81.0], name="plain", kept=1.0)
    report.picture((falls_behind, run_with([1.0] * 60, name="shed")), PHASES, 10.0, tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
