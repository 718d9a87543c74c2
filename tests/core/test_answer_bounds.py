"""What is said of answers in words leaves out none that may be off."""

from __future__ import annotations

import pytest

from jettison.core.answer_bounds import AnswerBounds

NOTHING = {"bounded": 0, "few_rows": 0, "median": None, "p95": None}


def test_answers_are_called_without_error_only_where_all_are_exact():
    assert AnswerBounds(answers=9, **NOTHING).words("fare") == "fare is without error"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("few_rows", "too few rows for bounds in 9 of 9"),
        ("dependent", "dependent rows, so bounds are too short, in 9 of 9"),
        ("unconfirmed", "no bounds to be trusted in 9 of 9"),
    ],
)
def test_answers_of_which_nobody_knows_how_far_they_are_off_say_so(kind, words):
    said = AnswerBounds(answers=9, **NOTHING | {kind: 9}).words("fare")
    assert said == f"fare is off by nobody knows how much ({words})"


def test_where_all_rows_are_dependent_nothing_is_bounded():
    one = AnswerBounds(answers=9, bounded=5, few_rows=2, median=0.1, p95=0.2, foreseen=True, median_error=0.1)
    other = one.of_dependent_rows()
    assert (other.bounded, other.few_rows, other.dependent, other.median, other.median_error) == (0, 0, 7, None, None)
    assert other.words("fare").startswith("fare would be off by nobody knows how much (dependent rows")
