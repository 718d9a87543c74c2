"""A query as plain data: what is on record is there, nothing is made up, and no secret is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.stats import Budget, PointStats, Stats
from jettison.core.storage import Folder
from jettison.errors import InvalidSetting
from jettison.page import panels, recent
from jettison.page.panels import Drawing, Panel, TablePanel
from jettison.page.panels.group_shares import GroupShares
from jettison.page.panels.network_picture import NetworkPicture
from jettison.page.panels.region_map import RegionMap
from jettison.page.panels.window_strip import WindowStrip
from jettison.page.prometheus import exposition
from jettison.page.server import Watched
from jettison.page.view import Query
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.policies.priority.priority_setting import LevelDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.window.window_marks import WindowMarks
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import LatencyOrder, Order, Orders, record_of
from jettison.runtime.plan_file import PLAN_FILE, SECOND_FILE, encode
from jettison.runtime.schedule import Schedule
from jettison.settle.settled_record import Part, Settled, save
from jettison.settle.touched_windows import Look, Lost, Window
from page_ledgers import EVIL, NOW_S, figures, query

SEEN = Stats(4, 0.0, 1.0, {"rides": PointStats(900, 900)})
HALF = Budget(0.5, 0.5, 3.0, "twice too many rows")


def test_totals_latency_cause_and_changes_are_those_on_record(tmp_path: Path) -> None:
    query(tmp_path)
    view = Query(str(tmp_path)).view()
    assert (view.state, view.policy, view.bound_s) == ("ended", "UniformDrop", 3.0)
    assert (view.batches, view.seen, view.kept, view.dropped) == (40, 40_000, 25_000, 15_000)
    assert (view.latency_s, view.last_batch, view.plan_version) == (1.5, 39, 2)
    assert view.cause == "twice too many rows"
    (point,) = view.points
    assert (point.name, point.keep_fraction, point.last_seen, point.last_kept) == ("rides", 0.5, 1000, 500)
    assert [change.kind for change in view.changes] == ["plan", "start", "plan", "stop"]
    assert view.series is not None
    assert view.series.bounds == {EVIL: [None] * 10 + [pytest.approx(0.02 + n / 1000) for n in range(10, 40)]}
    assert view.series.bounds_p95[EVIL][-1] == 0.1
    assert (view.waiting_rows, view.lag_rows, view.lag_s) == (780, 1539, 2.5)
    assert (view.series.waiting_rows[1], view.series.lag_rows[0]) == (20, 1500)
    assert view.model is not None
    assert view.model.arrival_per_s == [1000.0]
    assert view.model.capacity_per_s == pytest.approx([(1.5 - 0.5) / 1e-3 / 1.5])  # batches of half the bound


def test_capacity_is_what_the_plan_says_or_follows_from_the_bound_of_its_time(tmp_path: Path) -> None:
    ledger = query(tmp_path, ended=False)
    ledger.order(NOW_S + 20, "a latency bound of 7 s", 7.0, {})
    ledger.plan(NOW_S + 30, DropPlan(3, {"rides": RandomDrop(0.6)}), replace(figures(), capacity_rows_per_s=653.0))
    view = Query(str(tmp_path)).view()
    assert view.model is not None
    assert view.model.capacity_per_s == pytest.approx([(1.5 - 0.5) / 1e-3 / 1.5, 653.0]), "as the plan's cause has it"


def test_of_two_files_with_plans_the_newer_one_is_shown_and_a_damaged_one_passed_over(tmp_path: Path) -> None:
    """Settings are whole there: in the ledger long ones are abridged."""
    query(tmp_path)
    home = Folder(tmp_path) / "jettison"
    for name, version, share in ((PLAN_FILE, 1, 0.75), (SECOND_FILE, 2, 0.25)):
        plan = DropPlan(version, {"rides": RandomDrop(share)})
        home.replace(name, encode(Schedule.of(plan), valid_until_us=1, writing=version))
    assert Query(str(tmp_path)).view().points[0].keep_fraction == 0.25
    home.replace(SECOND_FILE, b"damaged")
    assert Query(str(tmp_path)).view().points[0].keep_fraction == 0.5, "as the ledger has it"


def test_what_a_person_has_set_is_shown_until_it_is_cleared(tmp_path: Path) -> None:
    ledger = query(tmp_path, ended=False)
    by = {"author": "ann", "reason": "token=hunter2 & audit", "at_s": NOW_S}
    given = Orders(latency=LatencyOrder(**by, seconds=7.0), dry_run=Order(**by))
    ledger.order(NOW_S + 41, given.changes(Orders()), 7.0, record_of(given))
    view = Query(str(tmp_path)).view()
    assert (view.bound_s, view.dry_run, len(view.orders)) == (7.0, True, 2)
    assert view.orders[0].startswith("a latency bound of 7 s (set by ann: ")
    assert [change.kind for change in view.changes][-1] == "order"
    assert b"hunter2" not in view.to_json()
    ledger.order(NOW_S + 42, Orders().changes(given), 3.0, record_of(Orders()))
    view = Query(str(tmp_path)).view()
    assert (view.bound_s, view.dry_run, view.orders) == (3.0, False, [])
    assert view.changes[-1].text.startswith("no longer: a latency bound of 7 s")


def long_ago(checkpoint: Path, monkeypatch: pytest.MonkeyPatch, *, pruned: bool) -> None:
    """A query whose last start, order and plan lie far back: not among what is read, or gone."""
    monkeypatch.setattr(recent, "_MOST_BYTES", 8_000)
    graph = QueryGraph([Input("rides")], [Box("b", ("rides",), "map", cost=1.0)], [Output("archive", "b")])
    policy = NetworkDrop(graph)
    folder = Folder(checkpoint) / "jettison" / "ledger"
    ledger = Ledger.open(folder, segment_bytes=2_000, **({"keep_bytes": 10_000} if pruned else {}))
    outline = dict(policy.outline())
    ledger.start(NOW_S, latency_bound_s=3.0, points=["rides"], policy="NetworkDrop", dry_run=True, outline=outline)
    given = Orders(latency=LatencyOrder(author="ann", at_s=NOW_S, seconds=7.0))
    ledger.order(NOW_S, given.changes(Orders()), 7.0, record_of(given))
    ledger.plan(NOW_S, policy.plan(replace(SEEN, points={"rides": PointStats(900, 900)}), HALF), figures())
    for number in range(200):
        rows = {"rides": PointStats(1000, 500)}
        ledger.batch(Stats(number, NOW_S + number, 0.9, rows, plan_version=0), latency_s=1.0)


@pytest.mark.parametrize("pruned", [False, True])
def test_what_stands_is_shown_however_long_ago_it_was_said(tmp_path: Path, monkeypatch, pruned: bool) -> None:
    long_ago(tmp_path, monkeypatch, pruned=pruned)
    looked = Query(str(tmp_path))
    view = looked.view()
    assert view.batches_shown < view.batches == 200
    assert (view.bound_s, view.dry_run, view.policy, len(view.orders)) == (7.0, True, "NetworkDrop", 1)
    assert view.cause == "twice too many rows"
    assert [type(panel) for panel in view.panels] == [NetworkPicture]
    assert [change.kind for change in view.changes] == ["plan", "start", "order"], "each once"
    assert any(b"jettison_latency_bound_seconds{" in line for line in exposition(Watched([looked]))().splitlines())


def test_under_an_order_the_cause_does_not_speak_of_dropping(tmp_path: Path) -> None:
    ledger = query(tmp_path, ended=False)
    (Folder(tmp_path) / "jettison").replace(
        "controller.json", b'{"budget": {"cause": "twice too many rows: keep 0.5"}}'
    )
    given = Orders(keep_everything=Order(author="ann", at_s=NOW_S))
    ledger.order(NOW_S + 41, given.changes(Orders()), 3.0, record_of(given))
    assert Query(str(tmp_path)).view().cause == "keep everything (set by ann)"


def test_a_checkpoint_without_a_record_is_shown_as_empty(tmp_path: Path) -> None:
    view = Query(str(tmp_path)).view()
    assert (view.state, view.batches, view.series, view.model, view.panels) == ("unknown", 0, None, None, [])


def test_what_was_added_is_there_at_the_next_look(tmp_path: Path) -> None:
    ledger = query(tmp_path, ended=False)
    looked = Query(str(tmp_path))
    assert looked.view().batches == 40
    ledger.batch(Stats(40, NOW_S + 40, 0.9, {"rides": PointStats(100, 100)}, plan_version=2), latency_s=9.0)
    view = looked.view()
    assert (view.batches, view.seen, view.latency_s) == (41, 40_100, 9.0)


def test_a_query_that_is_alive_silent_or_failed_is_said_to_be(tmp_path: Path) -> None:
    ledger = query(tmp_path, ended=False)
    home = Folder(tmp_path) / "jettison"
    home.replace("owner.json", b'{"run": "a", "at_s": 100.0}')
    assert Query(str(tmp_path)).view(now_s=104.0).state == "running"
    assert Query(str(tmp_path)).view(now_s=200.0).state == "silent"
    ledger.stop(NOW_S + 99, error="it broke, password=hunter2", faults={})
    view = Query(str(tmp_path)).view()
    assert view.state == "failed"
    assert "it broke" in view.state_text


def test_a_batch_that_runs_for_longer_than_the_bound_is_said_to(tmp_path: Path) -> None:
    ledger = query(tmp_path, batches=0, ended=False)
    (Folder(tmp_path) / "jettison").replace("owner.json", b'{"run": "a", "at_s": %d}' % (NOW_S + 106))
    (Folder(tmp_path) / "offsets").replace("0", b'v1\n{"batchTimestampMs":%d}\n0' % (NOW_S * 1e3 - 9e3))

    def seen(after_s: float) -> tuple[str, float | None]:
        view = Query(str(tmp_path)).view(now_s=NOW_S + after_s)
        return view.state_text, view.running_batch_s

    assert seen(2.0) == ("running", 2.0), "since this start, which repeats what an earlier one had begun"
    assert seen(106.0) == ("running; batch 0 has taken 106 s so far", 106.0)
    (Folder(tmp_path) / "commits").replace("0", b"v1")
    assert seen(106.0) == ("running", None)
    (Folder(tmp_path) / "offsets").replace("1", b'v1\n{"batchTimestampMs":%d}\n0' % (NOW_S * 1e3 + 96e3))
    assert seen(106.0)[1] == 10.0
    ledger.stop(NOW_S + 107, error="killed", faults={})
    assert seen(108.0)[1] is None


def test_no_secret_is_shown_even_if_one_is_on_record(tmp_path: Path) -> None:
    query(tmp_path / "a", cause="cannot read jdbc:x://ann:hunter2@db")
    folder = Folder(tmp_path / "a") / "jettison" / "ledger"
    folder.append("run-000009.jsonl", b'{"record":"fault","at_s":1.0,"kind":"report","detail":"password=hunter2"}\n')
    folder.append("run-000009.jsonl", b'{"record":"plan","at_s":2.0,"version":9,"points":{},"cause":"token=hunter2"}\n')
    view = Query(str(tmp_path / "a")).view()
    assert view.faults == {"report": 1}
    assert b"hunter2" not in view.to_json()
    assert "***" in view.cause


def test_damaged_lines_and_settings_of_a_newer_release_harm_nothing(tmp_path: Path) -> None:
    query(tmp_path)
    folder = Folder(tmp_path) / "jettison" / "ledger"
    new = b'{"record":"plan","at_s":2e9,"version":9,"points":{"rides":{"kind":"quantum"}},"cause":"new"}\n'
    folder.append("run-000009.jsonl", b"no record\n" + new)
    view = Query(str(tmp_path)).view()
    assert (view.batches, view.plan_version) == (40, 9)
    assert view.points[0].keep_fraction is None


def test_windows_are_placed_in_time_by_what_the_start_says(tmp_path: Path) -> None:
    policy = jt.WindowDrop(time="at", window=("10 seconds", "5 seconds"), max_gap=3)
    marks = WindowMarks((7,), ("kdk",), ((None, 90, None),), next_unit=10, row_share=0.6)
    query(tmp_path, setting=marks, policy=policy)
    (strip,) = Query(str(tmp_path)).view().panels
    assert isinstance(strip, WindowStrip)
    assert (strip.marks, strip.start_s, strip.size_s, strip.max_gap) == ("kdk", [35.0, 40.0, 45.0], 10.0, 3)


def test_groups_that_are_thinned_come_with_their_shares(tmp_path: Path) -> None:
    policy = jt.ConceptDrop(group="route", time="at", window="10 minutes")
    setting = GroupDrop(0.4, 600_000_000, (0,), (0.9,), ((-5, 77),), ((0.25, 0.01),), new_keep_fraction=0.7)
    query(tmp_path, setting=setting, policy=policy)
    (shares,) = Query(str(tmp_path)).view().panels
    assert isinstance(shares, GroupShares)
    assert (shares.columns, shares.pane_s, shares.named, shares.others, shares.new) == (["route"], 600.0, 2, 0.9, 0.7)
    assert [(group.hash, group.keep_fraction) for group in shares.groups] == [("0000004d", 0.01), ("fffffffb", 0.25)]


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_map_of_regions_agrees_with_what_the_setting_decides(tmp_path: Path, dimensions: int) -> None:
    names = ["price", "weight", "age"][:dimensions]
    rng = np.random.default_rng(7)
    sample = {name: rng.uniform(0, 100, 2000) for name in names}
    space = [jt.Attribute.number(name, 0, 100) for name in names]
    policy = jt.Sifter(jt.RangeQueries(space, ["price > 50"]), sample, regions=8, partitioning="grid")
    setting = policy.plan(SEEN, HALF).points["rides"]
    query(tmp_path, setting=setting, policy=policy)
    (shown,) = Query(str(tmp_path)).view().panels
    assert isinstance(shown, RegionMap)
    assert shown.attributes == names[:2]
    assert shown.averaged_over == names[2:]
    keep = np.array(shown.keep)
    assert keep.shape == ((len(shown.edges[1]) - 1) if dimensions > 1 else 1, len(shown.edges[0]) - 1)
    volume = np.diff(shown.edges[0])[None, :] * (np.diff(shown.edges[1])[:, None] if dimensions > 1 else 1.0)
    assert float((keep * volume).sum() / volume.sum()) == pytest.approx(0.5, abs=0.03)
    above = np.array(shown.edges[0][:-1]) >= 49.99
    assert above.any()
    assert keep[:, above].min() > keep[:, ~above].max()


def test_a_network_is_shown_with_its_drops_and_what_outputs_get(tmp_path: Path) -> None:
    graph = QueryGraph(
        [Input("packets")],
        [Box("parse", ("packets",), "map", cost=4.0), Box("alarms", ("parse",), selectivity=0.01)],
        [Output("archive", "parse"), Output("pager", "alarms")],
    )
    policy = NetworkDrop(graph)
    ledger = query(tmp_path, policy=policy)
    ledger.plan(NOW_S + 100, policy.plan(SEEN, HALF))
    (shown,) = Query(str(tmp_path)).view().panels
    assert isinstance(shown, NetworkPicture)
    assert {node.name for node in shown.nodes} == {"packets", "parse", "alarms", "archive", "pager"}
    outputs = {node.name: node for node in shown.nodes if node.kind == "output"}
    assert all(node.delivered is not None and node.utility is not None for node in outputs.values())
    shares = [edge.keep_fraction for edge in shown.edges] + list(shown.at_input.values())
    assert min(shares) < 1.0
    assert min(node.delivered or 0.0 for node in outputs.values()) < 1.0


def test_a_policy_that_nobody_drew_shows_what_its_settings_say(tmp_path: Path) -> None:
    policy = PriorityDrop({"fare > 50": 3, "fare > 20": 2})
    query(tmp_path, setting=LevelDrop(0.4, (1.0, 0.5, 0.1)), policy=policy)
    (shown,) = Query(str(tmp_path)).view().panels
    assert isinstance(shown, TablePanel)
    assert shown.title == "Setting of the kind priority at rides"
    assert ["levels", '["(fare > 50)", "(fare > 20)"]'] in shown.rows
    assert ["keeps", "[1.0, 0.5, 0.1]"] in shown.rows


def test_a_kind_that_this_process_does_not_know_is_shown_as_it_is_on_record(tmp_path: Path) -> None:
    query(tmp_path)
    new = b'{"record":"plan","at_s":2e9,"version":9,"points":{"rides":{"kind":"quantum","spin":0.5}},"cause":"new"}\n'
    (Folder(tmp_path) / "jettison" / "ledger").append("run-000009.jsonl", new)
    (shown,) = Query(str(tmp_path)).view().panels
    assert isinstance(shown, TablePanel)
    assert shown.rows == [["spin", "0.5"]]


class Shares(Drawing):
    """A drawing as an author of a policy registers one."""

    def panels(self, settings: Mapping[str, Setting], outline: Mapping[str, Any]) -> Iterator[Panel]:
        for point, setting in settings.items():
            yield TablePanel(title=point, text=f"{len(outline['levels'])} levels, {setting.keep_fraction:.0%} kept")


def test_settings_are_shown_by_the_drawing_that_is_registered_for_their_kind(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(panels, "_by_kind", dict(panels._by_kind))
    panels.register(LevelDrop.kind, Shares)
    query(tmp_path, setting=LevelDrop(0.4, (1.0, 0.1)), policy=PriorityDrop({"fare > 50": 3}))
    view = Query(str(tmp_path)).view()
    assert [(panel.title, panel.text) for panel in view.panels] == [("rides", "1 levels, 40% kept")]
    with pytest.raises(InvalidSetting, match="no drawing yet"):
        panels.register(GroupDrop.kind, Shares)


def test_settled_open_and_lost_windows_are_shown(tmp_path: Path) -> None:
    query(tmp_path)
    home = Folder(tmp_path) / "jettison"
    assert Query(str(tmp_path)).view().panels == []
    windows = tuple(Window(10 * n, 10 * n + 10) for n in range(3))
    parts = (Part(number=1, windows=windows[:1], through=9, at_s=NOW_S),)
    lost = Lost(3, 3, "password=hunter2 is gone", 25, 29)
    save(home, Settled(looks=(Look(3, 4, windows),), parts=parts, lost=(lost,)))
    view = Query(str(tmp_path)).view()
    (panel,) = view.panels
    assert isinstance(panel, TablePanel)
    assert "1 settled, 1 open, 1 lost; exact by reconciliation since 2026-11-18" in panel.text
    assert [row[0] for row in panel.rows] == ["settled", "open", "lost"]
    (home / "settle").replace("settled.json", b"{")
    (panel,) = Query(str(tmp_path)).view().panels
    assert isinstance(panel, TablePanel)
    assert "must be readable" in panel.text, "a damaged record does not take the page down"
