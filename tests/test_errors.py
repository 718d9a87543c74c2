"""Messages say what was expected, what came, where, and a hint; classes fit the built-ins."""

from __future__ import annotations

import inspect

import pytest

from jettison import errors
from jettison.errors import JettisonError, explain

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


def test_a_message_without_place_and_hint_is_one_sentence():
    assert explain("`x` must be positive", "-1") == "`x` must be positive, got -1."


def test_place_and_hint_are_added_where_given():
    assert explain("`x` must be positive", "-1", where="point 'a'") == "`x` must be positive, got -1 for point 'a'."
    assert explain("`x` must be positive", "-1", hint="try 1") == "`x` must be positive, got -1. Hint: try 1."
