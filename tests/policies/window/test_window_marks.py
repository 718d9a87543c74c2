from __future__ import annotations

import pytest

from jettison.core.plan import DropPlan
from jettison.errors import DamagedPlan, InvalidSetting
from jettison.policies.window.window_marks import WindowMarks

MARKS = WindowMarks((7, 70), ("kdvd", "k"), ((None, 90, 90, 95), (None,)), next_unit=11, row_share=0.6, shut=("b",))


def test_it_comes_back_from_json_unchanged() -> None:
    plan = DropPlan(3, {"rows": MARKS}, "overload")
    assert DropPlan.from_json(plan.to_json()) == plan


def test_marks_answer_by_query_and_window() -> None:
    assert [MARKS.dropped(0, n) for n in (6, 7, 8, 9, 10, 11)] == [False, False, True, False, True, False]
    assert not MARKS.dropped(1, 70)
    assert not WindowMarks().dropped(0, 5)


def test_the_kept_share_is_one_while_no_window_is_dropped() -> None:
    assert MARKS.keep_fraction == 0.6
    assert WindowMarks((7,), ("kv",), ((None, None),), row_share=0.6).keep_fraction == 1.0


def test_releasing_a_plan_keeps_decided_windows_and_forgets_the_rest() -> None:
    from jettison.policies.uniform.random_setting import RandomDrop

    released = DropPlan(3, {"rows": MARKS, "others": RandomDrop(0.5)}).released(4, "fault")
    assert released == DropPlan(4, {"rows": MARKS}, "fault")


@pytest.mark.parametrize(
    "changes",
    [
        {"marks": ("kx",), "first": (1,), "opens_us": ((None, None),)},
        {"marks": ("kd",), "first": (1,), "opens_us": ((None,),)},
        {"marks": ("kd",), "first": (), "opens_us": ((None, 3),)},
        {"row_share": 1.5},
        {"window_share": -0.1},
    ],
)
def test_marks_that_do_not_fit_together_are_refused(changes: dict) -> None:
    with pytest.raises(InvalidSetting):
        WindowMarks(**changes)


def test_a_damaged_document_is_a_damaged_plan() -> None:
    text = DropPlan(3, {"rows": MARKS}).to_json().replace('"kdvd"', '"kd"')
    with pytest.raises(DamagedPlan):
        DropPlan.from_json(text)
