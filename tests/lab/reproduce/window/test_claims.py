"""Claims about window drops that can fail, and that say what they were judged on."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.window.drop_rates import of_windows
from jettison.lab.reproduce.window.live import Answer, judged
from jettison.lab.reproduce.window.overhead import CELLS, of_idle

SECONDS = 90.0  # windows that end from 18 to 80 s are judged: 248, of which a third could come in time


def answers(count: int, latency_s: float = 5.0) -> list[Answer]:
    return [Answer(18.1 + 60 * n / count, latency_s) for n in range(count)]


@pytest.mark.parametrize(
    ("windows", "random", "holds"),
    [
        (answers(80), [], [True, True]),
        (answers(26), [], [False, True]),
        (answers(80, latency_s=11.0), [], [False, True]),
        (answers(80), answers(40), [True, False]),
        ([], [], [False, True]),
    ],
    ids=["sound", "too few", "too late", "random keeps up", "nothing"],
)
def test_three_times_load_is_judged_by_what_could_come_in_time(windows, random, holds):
    _, claims = judged({"windows": windows, "random": random}, 20_000.0, SECONDS)
    assert [claim.holds for claim in claims] == holds
    assert claims[0].config["windows_judged"] == 248


def test_one_cell_of_table_4_is_not_called_the_worst():
    (whole,) = judge("window", of_idle("json", dict.fromkeys(CELLS, 1.0) | {CELLS[3]: 1.2}))
    assert (whole.id, whole.ours, whole.holds) == ("idle-json", 1.2, False)
    (some,) = judge("window", of_idle("json", {CELLS[-1]: 1.0}))
    assert some.id == "idle-some-cells-json"
    assert "worst of 1 of the 8 cells" in some.claim
    assert some.config["after_a_look"].startswith("the size of batches")


@pytest.mark.parametrize(
    ("rates", "broken"),
    [
        ({}, []),
        ({(100, 100): 0.4}, ["tumbling-needs-less", "size-does-not-matter"]),
        ({(100, 10): 0.1}, ["slide-rises-first", "slide-falls-then"]),
    ],
    ids=["sound", "tumbling needs more", "no bump"],
)
def test_claims_on_size_and_slide_fail_where_they_must(rates, broken):
    sound = {(25, 25): 0.2, (100, 1): 0.35, (100, 10): 0.8, (100, 100): 0.2}
    assert [one.id for one in judge("window", of_windows(sound | rates)) if not one.holds] == broken
