"""A plan is an immutable value that survives its way through text, and refuses what makes no sense."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.documents import LONGEST_S
from jettison.core.plan import DropPlan
from jettison.errors import DamagedPlan, InvalidSetting
from jettison.policies.uniform.random_setting import RandomDrop

fractions = st.floats(min_value=0.0, max_value=1.0)
# Any code point at all: blanks, quotes, line separators, lone surrogates, the empty string.
any_text = st.text(st.characters(exclude_categories=()), max_size=20)
ages = st.floats(min_value=0.0, max_value=LONGEST_S, exclude_min=True, allow_nan=False)
settings_ = st.builds(RandomDrop, fractions) | st.builds(RandomDrop, fractions, fractions, ages)
plans = st.builds(
    DropPlan, st.integers(min_value=0, max_value=2**63 - 1), st.dictionaries(any_text, settings_, max_size=5), any_text
)


@given(plans)
def test_any_plan_comes_back_equal_from_json(plan):
    assert DropPlan.from_json(plan.to_json()) == plan


@given(plans)
def test_json_is_one_line_of_ascii_so_that_bytes_and_characters_agree(plan):
    text = plan.to_json()
    assert text.isascii()
    assert len(text.splitlines()) == 1


@given(st.text() | st.lists(st.none() | st.floats() | st.text(max_size=5)).map(json.dumps))
def test_other_text_is_damaged_and_nothing_worse(text):
    with pytest.raises(DamagedPlan):
        DropPlan.from_json(text)


WHOLE = {"version": 1, "points": {"a": {"kind": "random", "keep_fraction": 0.5}}, "cause": "why"}


def test_fields_left_out_of_a_setting_take_their_defaults():
    assert DropPlan.from_json(json.dumps(WHOLE)) == DropPlan(1, {"a": RandomDrop(0.5)}, "why")


@pytest.mark.parametrize(
    "change",
    [
        {"version": -1},
        {"version": "new"},
        {"version": None},
        {"version": float("inf")},
        {"version": float("nan")},
        {"points": None},
        {"points": []},
        {"points": {"a": None}},
        {"points": {"a": {"keep_fraction": 0.5}}},
        {"points": {"a": {"kind": "magic", "keep_fraction": 0.5}}},
        {"points": {"a": {"kind": ["random"], "keep_fraction": 0.5}}},
        {"points": {"a": {"kind": "random", "keep_fraction": 1.5}}},
        {"points": {"a": {"kind": "random", "keep_fraction": float("nan")}}},
        {"points": {"a": {"kind": "random", "keep_fraction": "half"}}},
        {"points": {"a": {"kind": "random", "keep_fraction": 0.5, "late_keep_fraction": 0.1}}},
        {"points": {"a": {"kind": "random", "late_keep_fraction": 0.1, "late_after_s": "soon"}}},
        {"points": {"a": {"kind": "random", "surprise": 1}}},
    ],
    ids=str,
)
def test_a_document_with_one_wrong_field_is_damaged(change):
    with pytest.raises(DamagedPlan):
        DropPlan.from_json(json.dumps(WHOLE | change))


@pytest.mark.parametrize("missing", ["version", "points", "cause"])
def test_a_document_without_a_field_is_damaged(missing):
    with pytest.raises(DamagedPlan, match=missing):
        DropPlan.from_json(json.dumps({name: value for name, value in WHOLE.items() if name != missing}))


def test_damage_is_named_by_its_path():
    wrong = WHOLE | {"points": {"rides": {"kind": "random", "keep_fraction": 1.5}}}
    with pytest.raises(DamagedPlan, match=r"`keep_fraction` must lie in \[0, 1\], got 1.5\) for points.rides"):
        DropPlan.from_json(json.dumps(wrong))
    with pytest.raises(DamagedPlan, match=r"Expected `str`, got `int` - at `\$.cause`"):
        DropPlan.from_json(json.dumps(WHOLE | {"cause": 3}))


def test_text_nested_deeper_than_python_follows_is_damaged():
    with pytest.raises(DamagedPlan):
        DropPlan.from_json("[" * 200_000)


@pytest.mark.parametrize("fraction", [-0.001, 1.001, float("nan"), float("inf"), "0.5", None])
def test_a_keep_fraction_outside_0_to_1_is_refused(fraction):
    with pytest.raises(InvalidSetting, match=r"`keep_fraction` must lie in \[0, 1\]"):
        RandomDrop(fraction)


@pytest.mark.parametrize("fraction", [-0.001, 1.001, float("nan")])
def test_a_late_keep_fraction_outside_0_to_1_is_refused(fraction):
    with pytest.raises(InvalidSetting, match="`late_keep_fraction` must lie"):
        RandomDrop(0.5, fraction, 3.0)


@pytest.mark.parametrize("age", [0.0, -1.0, float("nan"), float("inf")])
def test_an_age_that_is_not_positive_is_refused(age):
    with pytest.raises(InvalidSetting, match="`late_after_s` must be positive"):
        RandomDrop(0.5, 0.1, age)


@pytest.mark.parametrize("half", [{"late_keep_fraction": 0.1}, {"late_after_s": 3.0}])
def test_the_two_settings_for_late_rows_go_together(half):
    with pytest.raises(InvalidSetting, match="go together"):
        RandomDrop(0.5, **half)


def test_a_negative_version_is_refused():
    with pytest.raises(InvalidSetting, match="version"):
        DropPlan(-1)


@pytest.mark.parametrize(
    ("setting", "keeps"),
    [
        (RandomDrop(), True),
        (RandomDrop(1.0, 1.0, 3.0), True),
        (RandomDrop(1.0, 0.999, 3.0), False),
        (RandomDrop(0.999), False),
        (RandomDrop(0.0), False),
    ],
)
def test_keeps_everything_means_late_rows_too(setting, keeps):
    assert setting.keeps_everything is keeps
    assert DropPlan(1, {"all": RandomDrop(), "other": setting}).keeps_everything is keeps


def test_a_plan_without_drop_points_keeps_everything():
    assert DropPlan(1).keeps_everything


def test_same_settings_looks_past_version_and_cause_only():
    plan = DropPlan(1, {"a": RandomDrop(0.5)}, "one reason")
    assert plan.same_settings(DropPlan(9, {"a": RandomDrop(0.5)}, "another"))
    assert not plan.same_settings(DropPlan(1, {"a": RandomDrop(0.5000001)}, "one reason"))
    assert not plan.same_settings(DropPlan(1, {"b": RandomDrop(0.5)}, "one reason"))
    assert not plan.same_settings(DropPlan(1, {}, "one reason"))


def test_a_plan_cannot_be_changed_not_even_through_the_mapping_it_was_made_from():
    points = {"a": RandomDrop(0.5)}
    plan = DropPlan(1, points)
    points["a"] = RandomDrop(0.0)
    assert plan.points["a"] == RandomDrop(0.5)
    with pytest.raises(TypeError):
        plan.points["a"] = RandomDrop(0.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.version = 2
