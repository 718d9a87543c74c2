"""The rules say the same in the README, in advice and under `policy="auto"`."""

from __future__ import annotations

from pathlib import Path

import pytest

import jettison
import jettison.policy
from jettison.core.answer_bounds import AnswerBounds
from jettison.errors import InvalidSetting
from jettison.runtime.chooser import DEFAULT, RULES, Auto, Facts, chosen, few_rows

BY_ZONE = Auto(group="zone", time="time", window="5 seconds")


def test_the_table_in_the_readme_is_made_of_the_rules():
    lines = ["| if ... | use |", "|---|---|", *(f"| {rule.case} | {rule.use} |" for rule in RULES)]
    assert "\n".join(lines) in (Path(__file__).parents[2] / "README.md").read_text()


def test_a_rule_that_leads_to_a_policy_leads_to_one_that_is_there():
    for rule in RULES:
        assert bool(rule.policy) == (rule.shown_by is not None)
        assert not rule.policy or rule.policy in jettison.__all__


def test_each_rule_with_a_condition_can_apply_and_the_default_does_otherwise():
    said = {
        "WindowDrop": Auto(time="time", window="5 seconds", whole_windows=True),
        "PriorityDrop": Auto(priorities={"vip": 1}),
        "ConceptDrop": BY_ZONE,
        "UniformDrop": Auto(),
    }
    assert {chosen(Facts(each))[0] for each in said.values()} == {rule.policy for rule in RULES if rule.policy}
    assert [chosen(Facts(each))[0] for each in said.values()] == list(said)
    assert chosen(Facts(Auto(group="zone"))) == (DEFAULT.policy, "nothing more is known of the data")


@pytest.mark.parametrize("known", [{}, {"time": "time"}, {"window": "5 seconds"}])
def test_whole_windows_are_not_forgotten_because_nobody_said_which(known):
    with pytest.raises(InvalidSetting, match=r"whole_windows=True\)` needs `time` and `window`"):
        Auto(whole_windows=True, **known)


def test_groups_are_looked_after_where_many_answers_rest_on_too_few_rows():
    assert chosen(Facts(BY_ZONE, few_rows=0.4)) == (
        "ConceptDrop",
        "40% of the answers rest on too few rows for bounds if rows are dropped at random",
    )
    assert chosen(Facts(BY_ZONE, few_rows=0.01))[0] == "UniformDrop"
    assert chosen(Facts(BY_ZONE, before="ConceptDrop", few_rows=0.0))[0] == "ConceptDrop", "it does not change its mind"


def test_the_aggregate_that_suffers_most_tells_how_many_rest_on_too_few_rows():
    of = dict(bounded=5, median=0.1, p95=0.2)
    found = {
        "fare": [AnswerBounds(answers=10, few_rows=1, **of), AnswerBounds(answers=10, few_rows=2, **of)],
        "rides": [AnswerBounds(answers=10, few_rows=0, **of)],
    }
    assert few_rows(found) == 0.15
    assert few_rows({}) is None
