"""`jettison set` as a person uses it, against a pilot that runs, has ended or refuses."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from jettison.core import storage
from jettison.core.documents import encode
from jettison.errors import InvalidInput, InvalidSetting, Unsupported
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.runtime import orders, set_command
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import DamagedOrders, Orders, Terms, author
from jettison.runtime.owner import Sign
from jettison.runtime.set_command import run_set
from pilot_parts import SETTINGS, FakePublisher, counted, records


def until(holds):
    deadline_s = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.fixture
def give(tmp_path):
    """Runs the command and returns what it said."""

    def run(**given):
        console = Console(file=io.StringIO(), width=400)
        run_set(console, str(tmp_path), **given)
        return console.file.getvalue()

    return run


@pytest.fixture
def alive(fly, folder):
    """A pilot of a query that gives signs of life."""

    def make(**options):
        made = fly(FakePublisher(), **options)
        folder.replace("owner.json", encode(Sign(run="a", at_s=time.time())).encode())
        return made

    return make


def test_a_running_query_follows_and_the_ledger_knows_who_said_it_and_why(alive, folder, give):
    pilot = alive()
    said = give(bound_s=7.0, reason="the sink is slow today")
    assert said == (
        f"a latency bound of 7 s (set by {author()}: the sink is slow today)\n"
        "the query follows it from its next plan on, and after a restart; it is on record\n"
    )
    assert pilot.latency_bound_s == 7.0
    (record,) = records(folder, "order")
    assert record["orders"]["latency"] | {"at_s": 0} == {
        "author": author(),
        "reason": "the sink is slow today",
        "at_s": 0,
        "seconds": 7.0,
    }
    assert give(keep_everything=True).startswith("keep everything")
    assert (
        give()
        == f"a latency bound of 7 s (set by {author()}: the sink is slow today)\nkeep everything (set by {author()})\n"
    )
    assert give(clear=["latency"]).startswith("no longer: a latency bound of 7 s")
    assert pilot.orders.keep_everything is not None
    assert give(clear=["all"]).startswith("no longer: keep everything")
    assert pilot.orders.changes(Orders()) == ""
    assert give() == "nothing is set: the query does as its program says\n"


def test_what_stands_already_is_not_given_twice(alive, folder, give):
    alive()
    give(dry_run=True)
    give(dry_run=True)
    assert len(records(folder, "order")) == 1


def test_orders_that_the_query_refuses_are_taken_back_and_not_said_to_be_set(alive, folder, give, tmp_path):
    pilot = alive(terms=Terms(SETTINGS, least_bound_s=1.0))
    give(bound_s=7.0)
    console = Console(file=io.StringIO(), width=400)
    with pytest.raises(InvalidSetting, match=r"^a latency bound above 1 s, got 0\.5 s\. .* stands again\.$") as error:
        run_set(console, str(tmp_path), bound_s=0.5)
    assert console.file.getvalue() == "", "nothing is said to be set"
    assert str(error.value).count("Hint") == 1
    assert not pilot.faults, "the person has been told"
    assert records(folder, "order")[-1]["text"].startswith("refused: a latency bound above 1 s")
    assert orders.standing(folder).latency.seconds == 7.0
    assert pilot.latency_bound_s == 7.0
    give(keep_everything=True)
    assert pilot.plan.keeps_everything


def test_only_predicates_that_were_compiled_can_protect(alive, folder, give):
    alive()
    with pytest.raises(InvalidSetting, match=r"got 'vip'\. Hint: Spark compiles .*guard\(protect=...\)"):
        give(protect=["vip"])
    assert orders.standing(folder).protect is None


def test_levels_of_priorities_can_be_protected_until_that_is_cleared(alive, give):
    pilot = alive(policy=PriorityDrop({"gold": 2, "silver": 1}))
    pilot.controller.keep = 0.4
    pilot.batch(counted(0, version=1, observed={"rows": (100.0, 300.0, 600.0)}))
    assert pilot.plan.points["rows"].keeps == pytest.approx((1.0, 0.98, 0.01))
    assert give(protect=["silver"]).startswith("protect silver (set by ")
    until(lambda: pilot.plan.points["rows"].keeps == (1.0, 1.0, 0.0))
    with pytest.raises(InvalidSetting, match=r"got 'silvr'\. Hint: did you mean 'silver'"):
        give(protect=["silvr"])
    give(clear=["protect"])
    until(lambda: pilot.plan.points["rows"].keeps == pytest.approx((1.0, 0.98, 0.01)))


def test_a_query_that_does_not_run_follows_when_it_is_started(fly, folder, give):
    fly(FakePublisher()).close()
    assert give(keep_everything=True).endswith(
        "no query runs on this checkpoint: the next one that is started will follow it, or say why not\n"
    )
    assert fly(FakePublisher()).orders.keep_everything is not None


def test_a_query_that_does_not_answer_is_not_said_to_follow(alive, give, monkeypatch):
    alive().close()
    monkeypatch.setattr(set_command, "_ANSWER_S", 0.3)
    with pytest.raises(Unsupported, match=r"an answer of the query within 0\.3 s, got none"):
        give(keep_everything=True)


def test_damaged_orders_are_only_overwritten_as_a_whole(alive, folder, give):
    alive()
    folder.replace(orders.FILE, b"rubbish")
    with pytest.raises(DamagedOrders, match="--clear all"):
        give(bound_s=7.0)
    with pytest.raises(DamagedOrders):
        give()
    assert folder.read(orders.FILE) == b"rubbish"
    give(clear=["all"])
    assert orders.standing(folder).changes(Orders()) == ""


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"protect": ["x" * 201]}, InvalidSetting, "--protect must be SQL of at most 200 characters"),
        ({"clear": ["latncy"]}, InvalidSetting, "--clear must name .* got 'latncy'. Hint: did you mean 'latency'"),
        ({"reason": "x" * 201, "dry_run": True}, InvalidSetting, "at most 200 characters, got 201"),
    ],
)
def test_what_cannot_be_ordered_is_refused_and_nothing_is_written(alive, folder, give, given, error, said):
    alive()
    with pytest.raises(error, match=said):
        give(**given)
    assert folder.read(orders.FILE) is None


def test_a_folder_that_is_no_checkpoint_is_refused_and_left_alone(give, tmp_path):
    for given in ({}, {"keep_everything": True}):
        with pytest.raises(InvalidInput, match="must be that of a query that has run under Jettison"):
            give(**given)
    assert list(tmp_path.iterdir()) == []


def test_a_query_whose_start_is_no_longer_on_record_is_known(give, tmp_path):
    """Of a long run the ledger lets the oldest files go, and the start with them."""
    Ledger.open(storage.home(tmp_path) / "ledger").fault(1e9, "report", "late")
    assert "nothing is set" in give()


def test_whoever_may_not_write_the_checkpoint_is_refused(fly, give, monkeypatch):
    fly(FakePublisher()).close()

    def denied(*_):
        raise PermissionError("orders.json: permission denied")

    monkeypatch.setattr(orders, "write", denied)  # permissions do not bind root
    with pytest.raises(
        Unsupported, match=r"got orders\.json: permission denied. Hint: run it as the user who runs the query"
    ):
        give(keep_everything=True)
