"""What is said of the goals: three words, and none of them sooner than the pairs allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jettison.lab.prove.goals import CANNOT_TELL, FAILS, HOLDS, Samples, no_worse, twice_as_good_on_half

BOUND_S = 5.0
JITTER = (0.0, 0.001, 0.002, -0.001, -0.002)


def figures(
    *, utility: float = 0.9, error: float = 0.1, late: float = 0.1, p95: float = 4.0, runs: int = 5
) -> dict[str, list[float]]:
    means = {"utility": utility, "error_mean": error, "late_windows": late, "latency_p95_s": p95}
    return {
        name: [mean + JITTER[(run + place) % 5] for run in range(runs)]
        for place, (name, mean) in enumerate(means.items())
    }


def of(ours: dict[str, list[float]], **rivals: dict[str, list[float]]) -> dict[str, Samples]:
    return {"taxi": {"jettison (X)": ours, **rivals}}


def first(samples: dict[str, Samples]) -> str:
    return no_worse(samples, dict.fromkeys(samples, BOUND_S)).verdict


def second(samples: dict[str, Samples], every: int) -> str:
    names = [*samples, *(f"other {n}" for n in range(every - len(samples)))]
    return twice_as_good_on_half(samples, dict.fromkeys(samples, BOUND_S), names).verdict


def test_equal_within_the_margin_holds() -> None:
    assert first(of(figures(), constant=figures(utility=0.905))) == HOLDS


@pytest.mark.parametrize("worse", [{"utility": 0.8}, {"error": 0.2}, {"late": 0.2}])
def test_each_of_utility_error_and_late_windows_can_fail_it(worse: dict[str, float]) -> None:
    assert first(of(figures(**worse), constant=figures())) == FAILS


def test_four_pairs_are_too_few_to_say_either() -> None:
    assert first(of(figures(runs=4), constant=figures(runs=4))) == CANNOT_TELL
    assert first(of(figures(utility=0.5, runs=4), constant=figures(runs=4))) == CANNOT_TELL


def test_an_interval_wider_than_the_margin_is_no_proof_that_nothing_is_worse() -> None:
    wide = figures() | {"utility": [0.8, 1.0, 0.85, 0.95, 0.9]}
    assert first(of(figures(), constant=wide)) == CANNOT_TELL


def test_ours_must_hold_the_bound_itself() -> None:
    late = figures(p95=9.0)
    assert first(of(late, constant=figures(utility=0.1))) == FAILS
    died = figures() | {"latency_p95_s": [4.0, 4.0, math.nan, 4.0, 4.0]}
    assert first(of(died, constant=figures(utility=0.1))) == FAILS
    assert second(of(figures(error=0.01, p95=9.0), constant=figures()), every=1) == FAILS


def test_a_rival_that_breaks_the_bound_is_not_one_of_equal_latency() -> None:
    assert first(of(figures(), plain=figures(utility=0.99, p95=30.0))) == HOLDS


def test_jettison_told_more_is_no_rival_of_itself() -> None:
    samples = of(figures(), **{"jettison (X, told its capacity)": figures(utility=0.99)})
    assert first(samples) == HOLDS


def test_what_chance_finds_among_many_comparisons_is_no_failure() -> None:
    """Without Holm, of 300 comparisons between equals a few would be called worse."""
    random = np.random.default_rng(3)

    def drawn() -> dict[str, list[float]]:
        spread = {
            "utility": (0.8, 0.1),
            "error_mean": (0.2, 0.1),
            "late_windows": (0.2, 0.1),
            "latency_p95_s": (4.0, 0.1),
        }
        return {name: random.normal(mean, by, 5).tolist() for name, (mean, by) in spread.items()}

    samples = {str(n): {"jettison": drawn(), **{f"rival {m}": drawn() for m in range(5)}} for n in range(20)}
    assert first(samples) == CANNOT_TELL


def test_half_of_them_counts_workloads_that_were_not_measured() -> None:
    twice = of(figures(error=0.01), constant=figures())
    goal = twice_as_good_on_half(twice, {"taxi": BOUND_S}, ["taxi", "q1", "q5", "q7"])
    assert goal.verdict == CANNOT_TELL
    assert "1 of 4, 1 of 4 measured" in goal.found
    assert second(twice, every=2) == HOLDS


def test_it_fails_once_too_few_are_left() -> None:
    equal = of(figures(), constant=figures())
    assert second(equal, every=2) == CANNOT_TELL
    assert second(equal, every=1) == FAILS
    assert second({"a": equal["taxi"], "b": equal["taxi"]}, every=3) == FAILS


def test_nothing_measured_is_nothing_shown() -> None:
    assert first({}) == CANNOT_TELL
