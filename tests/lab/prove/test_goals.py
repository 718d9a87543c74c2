"""What is said of the goals: three words, and none of them sooner than the pairs allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jettison.lab.prove.goals import CANNOT_TELL, FAILS, HOLDS, Goal, Samples, no_worse, twice_as_good_on_half

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


def rivals_of(samples: dict[str, Samples], also: tuple[str, ...] = ()) -> dict[str, list[str]]:
    return {name: [*(one for one in of if not one.startswith("jettison")), *also] for name, of in samples.items()}


def first_goal(samples: dict[str, Samples], not_entered: tuple[str, ...] = ()) -> Goal:
    return no_worse(samples, dict.fromkeys(samples, BOUND_S), list(samples), rivals_of(samples, not_entered))


def first(samples: dict[str, Samples]) -> str:
    return first_goal(samples).verdict


def second_goal(samples: dict[str, Samples], every: int, not_entered: tuple[str, ...] = ()) -> Goal:
    names = [*samples, *(f"other {n}" for n in range(every - len(samples)))]
    bounds = dict.fromkeys(samples, BOUND_S)
    return twice_as_good_on_half(samples, bounds, names, rivals_of(samples, not_entered))


def second(samples: dict[str, Samples], every: int) -> str:
    return second_goal(samples, every).verdict


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


@pytest.mark.parametrize("runs", [1, 4])
def test_ours_has_lost_no_workload_before_there_are_five_pairs(runs: int) -> None:
    goal = first_goal(of(figures(p95=9.0, runs=runs), constant=figures(runs=runs)))
    assert goal.verdict == CANNOT_TELL
    assert "fewer than 5 runs: taxi" in goal.found
    assert second(of(figures(p95=9.0, runs=runs), constant=figures(runs=runs)), every=1) == CANNOT_TELL


def test_a_rival_that_breaks_the_bound_is_not_one_of_equal_latency_and_alone_proves_nothing() -> None:
    plain = figures(utility=0.99, p95=30.0)
    assert first(of(figures(), plain=plain, constant=figures())) == HOLDS
    alone = first_goal(of(figures(), plain=plain))
    assert (alone.verdict, alone.found) == (CANNOT_TELL, "no rival held the bound on taxi")


@pytest.mark.parametrize("rivals", [{}, {"constant": figures(p95=5.1, utility=0.99, runs=1)}])
def test_one_run_without_a_rival_at_equal_latency_proves_nothing(rivals: dict[str, dict[str, list[float]]]) -> None:
    assert first(of(figures(runs=1), **rivals)) == CANNOT_TELL
    assert first(of(figures())) == CANNOT_TELL


@pytest.mark.parametrize("died", [1, 5])
def test_a_rival_that_died_is_open_and_named(died: int) -> None:
    """Whatever it died of: the machinery that measures may be at fault."""
    better = figures(utility=0.99)
    dead = {name: [*([math.nan] * died), *values[died:]] for name, values in better.items()}
    goal = first_goal(of(figures(), constant=figures(), pid=dead))
    assert goal.verdict == CANNOT_TELL
    assert "open: taxi (pid, utility)" in goal.found
    assert second(of(figures(error=0.01), constant=figures(), pid=dead), every=1) == CANNOT_TELL


def test_a_rival_that_held_no_latency_on_record_is_open_whatever_else_is_known() -> None:
    unknown = figures() | {"latency_p95_s": [math.nan] * 5}
    assert first(of(figures(utility=0.5), constant=unknown)) == CANNOT_TELL


def test_a_rival_that_was_not_entered_is_open_for_both_goals() -> None:
    samples = of(figures(error=0.01), constant=figures())
    assert first_goal(samples).verdict == second_goal(samples, every=1).verdict == HOLDS
    assert first_goal(samples, ("pid",)).verdict == second_goal(samples, 1, ("pid",)).verdict == CANNOT_TELL
    assert "taxi (pid, error mean)" in first_goal(samples, ("pid",)).found


def test_no_workload_that_was_not_measured_is_one_on_which_nobody_is_better() -> None:
    samples = of(figures(), constant=figures())
    goal = no_worse(samples, {"taxi": BOUND_S}, ["taxi", "q1", "q5"], rivals_of(samples))
    assert goal.verdict == CANNOT_TELL
    assert "not measured: 2 of 3" in goal.found


def test_worse_is_worse_by_more_than_the_margin() -> None:
    """By 0.01 of utility for certain, by 0.02 hardly: the margin is 0.02."""
    assert first(of(figures(utility=0.88), constant=figures(utility=0.89))) == HOLDS
    barely = figures() | {"utility": [0.885, 0.885, 0.875, 0.875, 0.88]}
    assert first(of(barely, constant=figures(utility=0.9))) == CANNOT_TELL
    assert first(of(figures(utility=0.85), constant=figures(utility=0.9))) == FAILS


def test_two_pairs_do_not_make_twice_as_good() -> None:
    few = figures(runs=2)
    assert second(of(figures(error=0.01, runs=2), constant=few), every=1) == CANNOT_TELL
    hopeless = figures(late=0.9, error=0.001, p95=30.0, runs=2)
    better = figures(late=0.01, error=0.1)
    assert second(of(better, plain=hopeless, constant=figures(late=0.5)), every=1) == CANNOT_TELL
    assert second(of(better, plain=figures(late=0.9, p95=30.0), constant=figures(late=0.5)), every=1) == HOLDS


def test_twice_in_one_of_two_measures_is_certain_in_spite_of_the_choice() -> None:
    """An upper bound of 97.5 % is met, one of 98.75 % for each of two measures is not."""
    ours = figures(error=0.05)
    # 2a - b: mean -0.0124, standard error 0.004: t = 3.1, between 2.78 and 3.50.
    spread = [0.0124 + step * 0.004 * math.sqrt(2.0) for step in (-2, -1, 0, 1, 2)]
    rival = figures() | {"error_mean": [2 * a + by for a, by in zip(ours["error_mean"], spread, strict=True)]}
    assert second(of(ours, constant=rival), every=1) == CANNOT_TELL


def test_of_many_rivals_one_that_chance_lets_off_is_no_failure() -> None:
    """Late windows are equal for all; in errors one of seven is within half by 97.5 %, not by a seventh of the level."""
    ours = figures(error=0.05)
    spread = [-0.0124 + step * 0.004 * math.sqrt(2.0) for step in (-2, -1, 0, 1, 2)]
    let_off = figures() | {"error_mean": [2 * a + by for a, by in zip(ours["error_mean"], spread, strict=True)]}
    others = {f"rival {n}": figures(error=0.2) for n in range(6)}
    assert second(of(ours, one=let_off), every=1) == FAILS
    assert second(of(ours, one=let_off, **others), every=1) == CANNOT_TELL


def test_jettison_told_more_is_no_rival_of_itself() -> None:
    told = {"jettison (X, told its capacity)": figures(utility=0.99)}
    assert first(of(figures(), constant=figures(), **told)) == HOLDS


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
    goal = second_goal(twice, every=4)
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
