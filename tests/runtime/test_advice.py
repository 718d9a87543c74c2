"""Advice holds against what the simulated engine then does."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from jettison import cli
from jettison.control.controller import Controller, ControlSettings
from jettison.control.load_model import Costs
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.documents import encode
from jettison.core.stats import Stats
from jettison.core.storage import Folder
from jettison.lab.sim.plant import Plant, PlantSettings
from jettison.runtime import advice as advising
from jettison.runtime.advice import Load, advice, error_of_counts
from jettison.runtime.ledger import Ledger

BOUND_S = 3.0
ENGINE = PlantSettings()


def flown(home, rate, *, dry_run=False, bound_s=BOUND_S, until_s=180.0, **limits):
    """Let a query run on the simulated engine, with its books; returns the share that its later batches kept."""
    controller = Controller(ControlSettings(latency_bound_s=bound_s))
    controller.dry_run = dry_run
    trace = Plant(replace(ENGINE, dry_run=dry_run), lambda _: rate).run(controller, until_s)
    ledger = Ledger.open(home / "ledger", **limits)
    ledger.start(0.0, latency_bound_s=bound_s, points=["rows"], dry_run=dry_run)
    for batch in trace:
        ledger.batch(batch.stats, latency_s=batch.worst_latency_s)
    home.replace("controller.json", encode(controller.to_dict()).encode())
    later = [batch.stats for batch in trace if batch.stats.started_s > until_s / 3]
    return sum(one.kept for one in later) / sum(one.seen for one in later)


def said_shares(sentences):
    found = re.search(r"(?:about|between) ([\d.]+)%(?: and ([\d.]+)%)? of the rows are kept", " ".join(sentences))
    low, high = found.groups()
    return float(low) / 100, float(high or low) / 100


@pytest.mark.parametrize("rate", [120_000.0, 250_000.0, 500_000.0])
@pytest.mark.parametrize("bound_s", [3.0, 6.0])
def test_what_is_said_to_be_kept_is_kept(tmp_path, rate, bound_s):
    """Within a fifth once rows were dropped; a dry run, which falls behind, knows only between what and what."""
    kept = flown(Folder(tmp_path / "shed"), rate, bound_s=bound_s)
    flown(Folder(tmp_path / "dry"), rate, dry_run=True, bound_s=bound_s)
    said, _ = said_shares(advice(Folder(tmp_path / "shed")))
    assert said == pytest.approx(kept, rel=0.2)
    low, high = said_shares(advice(Folder(tmp_path / "dry")))
    assert low <= kept <= high


def test_below_capacity_nothing_is_said_to_go_and_the_tightest_bound_holds(tmp_path):
    home, tight = Folder(tmp_path / "a"), Folder(tmp_path / "b")
    assert flown(home, 50_000.0) == 1.0
    sentences = advice(home)
    assert "Under the bound of 3 s nothing need be dropped at this load." in sentences
    (bound_s,) = [
        float(found[1]) for one in sentences if (found := re.match(r"A bound of ([\d.]+) s or more holds", one))
    ]
    assert bound_s < BOUND_S
    assert flown(tight, 50_000.0, bound_s=1.3 * bound_s) > 0.98
    assert flown(Folder(tmp_path / "c"), 50_000.0, bound_s=0.5 * bound_s) < 0.98


def test_what_is_out_of_reach_is_said_to_be():
    slow = Load(Costs(2.0, 1e-6, 9e-6), 50_000.0, 50_000.0, BOUND_S)
    assert slow.least_bound_s > BOUND_S
    flood = Load(Costs(0.1, 1e-5, 1e-5), 200_000.0, 200_000.0, BOUND_S)
    assert flood.least_bound_s == flood.bound_to_keep_all_s == float("inf")
    assert flood.shares == (0.0, 0.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_error_of_a_count_is_what_chance_makes_of_it(share):
    """Of 2,000 counts over 1,000 rows, 95 % lie within it."""
    kept = np.random.default_rng(1).binomial(1000, share, 2000) / share
    within = (np.abs(kept - 1000) <= 1000 * error_of_counts(share, 1000)).mean()
    assert within == pytest.approx(0.95, abs=0.015)


def test_without_batches_nothing_is_made_up(tmp_path):
    home = Folder(tmp_path) / "jettison"
    Ledger.open(home / "ledger").start(0.0, latency_bound_s=3.0)
    expected = "Nothing can be said yet: 0 batches with rows are on record, and what a batch costs is not known."
    assert advice(home) == [expected]
    assert CliRunner().invoke(cli.app, ["advise", str(tmp_path)]).output.strip() == expected


def test_a_damaged_state_is_no_news(tmp_path):
    home = Folder(tmp_path) / "jettison"
    flown(home, 50_000.0, until_s=30.0)
    home.replace("controller.json", b'{"model": 1}')
    assert advice(home)[0].endswith("what a batch costs is not known.")


@pytest.mark.parametrize("few", [2, 60])
def test_errors_of_the_querys_own_answers_are_told_and_the_policy_that_follows(tmp_path, few):
    """Quantiles of batches have no mean: what is said holds of so many answers, whatever else the batches held."""
    home = Folder(tmp_path) / "jettison"
    flown(home, 250_000.0, dry_run=True, until_s=60.0)
    ledger = Ledger.open(home / "ledger")
    true = {"median_error": 0.01, "p95_error": 0.03}
    for number, (bounded, median) in enumerate([(100, 0.02), (300, 0.04)]):
        of_fare = AnswerBounds(
            answers=400, bounded=bounded, few_rows=few, median=median, p95=2 * median, foreseen=True, **true
        )
        ledger.batch(Stats(9000 + number, 60.0 + number, 0.1, {}), latency_s=None, answers={"fare": of_fare})
    sentences = advice(home)
    assert (
        "By their bounds 400 answers 'fare' would have been off by up to 4.0% in half of them, and by up to 8.0% in 95%; in "
        "truth by up to 1.0% in half of them, and by up to 3.0% in 95%."
    ) in sentences
    (policy,) = [one for one in sentences if "policy" in one.lower() and "Drop" in one]
    assert ("ConceptDrop" in policy) == (few == 60)


def test_what_is_said_of_all_batches_holds_of_their_answers_together():
    """Each batch has the same error in 95 % of its answers, but for one, whose answers are much worse."""
    random = np.random.default_rng(2)
    widths = [random.exponential(scale, answers) for scale, answers in [(0.01, 500)] * 9 + [(0.3, 4500)]]
    known = [(float(np.quantile(one, 0.5)), float(np.quantile(one, 0.95)), len(one)) for one in widths]
    together = np.concatenate(widths)
    for percent in (50, 95):
        assert np.mean(together <= advising._most(known, percent)) >= percent / 100
    mean = sum(p95 * answers for _, p95, answers in known) / len(together)
    assert np.mean(together <= mean) < 0.95, "their mean would not"


def test_an_error_that_is_not_known_is_not_called_none(tmp_path):
    home = Folder(tmp_path) / "jettison"
    flown(home, 250_000.0, dry_run=True, until_s=60.0)
    ledger = Ledger.open(home / "ledger")
    of_fare = AnswerBounds(answers=40, bounded=40, few_rows=0, median=0.02, p95=0.04, foreseen=True)
    of_rides = AnswerBounds(answers=40, bounded=40, few_rows=0, median=None, p95=None, foreseen=True)
    ledger.batch(Stats(9000, 60.0, 0.1, {}), latency_s=None, answers={"fare": of_fare, "rides": of_rides})
    (said,) = [one for one in advice(home) if "bounds" in one and "answers '" in one]
    assert "in truth" not in said
    assert "0.0%" not in said


@pytest.mark.parametrize("policy", ["PriorityDrop", "WindowDrop", "NetworkDrop", "Sifter", "JoinDrop"])
def test_whoever_chose_a_policy_for_what_they_know_is_not_told_to_drop_it(tmp_path, policy):
    home = Folder(tmp_path) / "jettison"
    flown(home, 250_000.0, until_s=60.0)
    ledger = Ledger.open(home / "ledger")
    ledger.start(0.0, latency_bound_s=3.0, points=["rows"], policy=policy)
    of_fare = AnswerBounds(answers=40, bounded=40, few_rows=0, median=0.02, p95=0.04)
    ledger.batch(Stats(9000, 60.0, 0.1, {}), latency_s=None, answers={"fare": of_fare})
    assert f"The policy may stay, {policy}: the record does not tell what speaks for it." in advice(home)
    assert not any("UniformDrop" in one for one in advice(home))


def test_whoever_does_not_watch_answers_is_told_how(tmp_path):
    home = Folder(tmp_path) / "jettison"
    flown(home, 250_000.0, until_s=60.0)
    assert any("shedder.watch" in one for one in advice(home))


def test_there_is_advice_although_the_start_is_long_gone(tmp_path):
    home = Folder(tmp_path)
    flown(home, 120_000.0, segment_bytes=2_000, keep_bytes=6_000)
    assert [*Ledger(home / "ledger").records("start")] == []
    assert advice(home)[0].startswith("In the last")
