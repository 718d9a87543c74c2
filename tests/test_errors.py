"""Messages say what was expected, what came, where, and a hint; classes fit the built-ins."""

from __future__ import annotations

import inspect

import pytest

from jettison import errors
from jettison.errors import JettisonError, did_you_mean, explain

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, Exception) and value is not JettisonError
]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_is_ours_and_also_a_builtin(error):
    builtins = [base for base in error.__mro__ if base.__module__ == "builtins"]
    assert issubclass(error, JettisonError)
    assert builtins[0] not in (Exception, BaseException, object), "`except ValueError` and the like must catch it"


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidSetting, ValueError),
        (errors.InvalidInput, TypeError),
        (errors.MissingColumn, LookupError),
        (errors.DamagedPlan, ValueError),
        (errors.PlanTooLarge, ValueError),
        (errors.Unsupported, RuntimeError),
    ],
)
def test_people_can_catch_the_builtin_without_importing_ours(error, builtin):
    with pytest.raises(builtin, match="what happened"):
        raise error("what happened")


def test_a_message_says_what_was_expected_what_came_and_the_way_out():
    assert explain("`x` must be positive", "-1", hint="try 1") == "`x` must be positive, got -1. Hint: try 1."


def test_the_place_is_added_where_given():
    message = explain("`x` must be positive", "-1", where="point 'a'", hint="try 1")
    assert message == "`x` must be positive, got -1 for point 'a'. Hint: try 1."


def test_a_hint_that_asks_ends_as_a_question():
    assert explain("a known name", "'mpa'", hint="did you mean 'map'?").endswith("Hint: did you mean 'map'?")


def test_the_nearest_known_name_is_suggested_and_otherwise_what_else_to_do():
    known = ["idle-json", "idle-native", "sharing"]
    assert did_you_mean("idle-jsn", known, otherwise="run all") == "did you mean 'idle-json'?"
    assert did_you_mean("coffee", known, otherwise="run all") == "run all"
    assert did_you_mean(None, known, otherwise="run all") == "run all"
