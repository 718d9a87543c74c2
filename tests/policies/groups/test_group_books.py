"""What the rows kept say about groups reaches the policy with the next plan, and the ledger when a pane is over."""

from __future__ import annotations

import numpy as np

from jettison.control.controller import ControlSettings
from jettison.core.stats import Budget, EventTimes
from jettison.core.storage import Folder
from jettison.policies import ConceptDrop
from jettison.policies.groups.group_keys import PANES, packed
from jettison.policies.groups.pane_book import KeptGroups
from jettison.runtime.ledger import Ledger
from jettison.runtime.pilot import BatchReport, Pilot
from pilot_parts import FakePublisher

PANE_US = 10_000_000


class Tenth(ConceptDrop):
    """A tenth of the rows, whatever the controller says."""

    def plan(self, stats, budget):
        return ConceptDrop.plan(self, stats, Budget(0.1, 0.1, 3.0, "a tenth"))


def kept(groups: dict[int, int], pane: int, into_pane: float) -> KeptGroups:
    keys = packed(np.array(list(groups)) * PANES, [pane] * len(groups))
    newest_us = int((pane + into_pane) * PANE_US)
    return KeptGroups(tuple(keys.tolist()), tuple(groups.values()), sum(groups.values()), newest_us)


def test_large_groups_are_thinned_in_the_next_plan_and_drift_is_on_record(tmp_path):
    folder = Folder(tmp_path)
    policy = Tenth(group="key", time="at", window="10 seconds")
    settings = ControlSettings(latency_bound_s=3.0)
    pilot = Pilot(("rows",), policy, settings, FakePublisher(), folder, Ledger.open(folder / "ledger"))
    pilot.start()

    def batch(number: int, groups: dict[int, int], pane: int, into_pane: float) -> None:
        seen = kept(groups, pane, into_pane)
        times = EventTimes(seen.newest_us, 1, max(0, seen.newest_us - PANE_US))
        pilot.batch(
            BatchReport(
                "run", number, 1e9 + number, 0.5, seen.rows, pilot.plan.version,
                seen={"rows": seen.rows}, kept={"rows": seen.rows}, event_times=times, observed={"rows": seen},
            )
        )  # fmt: skip

    batch(0, {1: 9000, 2: 30, 3: 20}, pane=0, into_pane=0.5)
    setting = pilot.plan.points["rows"]
    assert (setting.starts_us, setting.groups, setting.others) == ((0,), ((PANES,),), (1.0,))
    assert 0.05 < setting.keeps[0][0] < 0.1
    batch(1, {2: 9000, 4: 30}, pane=1, into_pane=0.5)
    assert pilot.plan.points["rows"].groups[-1] == (2 * PANES,)
    batch(2, {2: 90}, pane=2, into_pane=0.5)
    batch(3, {2: 90}, pane=3, into_pane=0.5)
    pilot.close()
    first, second = list(pilot.ledger.records("concept"))[:2]
    assert (first["point"], first["start_us"], first["rows"], first["groups"]) == ("rows", 0, 90_500, 3)
    assert "distance" not in first
    assert second["overlap"] == 0.25
    assert second["appeared"] == 1
    assert second["distance"] > 0.9
    assert pilot.faults == {}


def test_a_plan_gets_more_room_as_more_groups_come_and_names_them_all(tmp_path):
    folder, policy = Folder(tmp_path), Tenth(group="key", time="at", window="10 seconds")
    points, many = ("many", "few"), range(14_000)
    settings = ControlSettings(latency_bound_s=3.0)
    pilot = Pilot(points, policy, settings, FakePublisher(), folder, Ledger.open(folder / "ledger"))
    pilot.start()
    for number, groups in enumerate(({1: 9000, 2: 30}, dict.fromkeys(many, 500))):
        observed = {"many": kept(groups, 0, 0.5), "few": kept({1: 9000}, 0, 0.5)}
        rows = {point: seen.rows for point, seen in observed.items()}
        version, times = pilot.plan.version, EventTimes(observed["many"].newest_us, 1, 0)
        pilot.batch(
            BatchReport(
                "run", number, 1e9 + number, 0.5, sum(rows.values()), version,
                seen=rows, kept=rows, event_times=times, observed=observed,
            )
        )  # fmt: skip
    pilot.close()
    assert {name: one.named_groups for name, one in pilot.plan.points.items()} == {"many": len(many), "few": 1}
    assert pilot.plan.cause == "a tenth"
    assert pilot.faults == {}
