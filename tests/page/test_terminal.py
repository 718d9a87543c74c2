"""A query in the terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import jettison as jt
from jettison.core.stats import Budget, PointStats, Stats
from jettison.page.panel_lines import lines
from jettison.page.panels.window_strip import WindowStrip
from jettison.page.terminal import screen
from jettison.page.view import Query
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.window.window_marks import WindowMarks
from page_ledgers import NOW_S, query

SEEN = Stats(4, 0.0, 1.0, {"rides": PointStats(900, 900)})
HALF = Budget(0.5, 0.5, 3.0, "twice too many rows")


def shown(view, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: SIM115 - ends with it
    console.print(screen(view, width, height))
    return console.export_text().splitlines()


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (50, 16)])
def test_the_screen_fits_the_window_and_says_what_the_page_says(tmp_path: Path, width: int, height: int) -> None:
    query(tmp_path)
    view = Query(str(tmp_path), "rides").view()
    lines = shown(view, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "25,000 of 40,000 rows kept" in text
    assert "plan 2: twice too many rows" in text
    assert "latency of 3 s" in text
    assert ("5.9%" in text) == (height > 16), "the error of the answers, where there is room"


def groups(checkpoint: Path) -> None:
    setting = GroupDrop(0.4, 600_000_000, (0,), (0.9,), ((-5, 77),), ((0.25, 0.01),), new_keep_fraction=0.7)
    query(checkpoint, setting=setting, policy=jt.ConceptDrop(group="route", time="at", window="10 minutes"))


def regions(checkpoint: Path) -> None:
    sample = {"price": np.linspace(0.0, 100.0, 500), "zone": np.array(["a", "b"] * 250)}
    space = [jt.Attribute.number("price", 0, 100), jt.Attribute.category("zone", ["a", "b"])]
    policy = jt.Sifter(jt.RangeQueries(space, ["zone = 'b'"]), sample, regions=8)
    query(checkpoint, setting=policy.plan(SEEN, HALF).points["rides"], policy=policy)


def windows(checkpoint: Path) -> None:
    policy = jt.WindowDrop(time="at", window=("10 seconds", "5 seconds"), max_gap=3)
    marks = WindowMarks((7,), ("kdk",), ((None, 90, None),), next_unit=10, row_share=0.6)
    query(checkpoint, setting=marks, policy=policy)


def network(checkpoint: Path) -> None:
    policy = NetworkDrop(QueryGraph([Input("rides")], [Box("b", ("rides",), "map")], [Output("archive", "b")]))
    query(checkpoint, policy=policy).plan(NOW_S + 100, policy.plan(SEEN, HALF))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (groups, "groups at rides      2 thinned: 0000004d 1.0%, fffffffb 25.0%; others keep 90.0%"),
        (regions, "regions at rides     strictest: price 0-"),
        (windows, "█░█ 1 of 3 dropped (█ kept, ░ dropped)"),
        (network, "output archive       50.0% delivered, utility 0."),
    ],
)
def test_what_only_a_mechanism_can_show_is_there_in_text(tmp_path: Path, made, said: str) -> None:
    made(tmp_path)
    assert said in "\n".join(shown(Query(str(tmp_path), "rides").view(), 120, 40))


def test_regions_that_keep_least_come_first_and_are_named_by_their_values(tmp_path: Path) -> None:
    regions(tmp_path)
    (panel,) = Query(str(tmp_path)).view().panels
    ((_, _, said),) = lines(panel, 10)
    assert re.findall("zone (.)", said)[0] == "a", "no query asks for it"
    least = float(re.findall("keeps ([0-9.]+)%", said)[0]) / 100
    assert least == pytest.approx(min(map(min, panel.keep)), abs=1e-3)


def test_windows_that_can_have_no_answer_or_are_not_on_record_count_as_none() -> None:
    ((_, strip, said),) = lines(WindowStrip(query="fares", first=7, marks="kd?dvk"), 10)
    assert (strip, said.partition(" (")[0]) == ("█░?░·█", "2 of 4 dropped")


def test_load_answers_and_faults_are_there(tmp_path: Path) -> None:
    ledger = query(tmp_path, ended=False)
    ledger.fault(NOW_S, "report", "gone")
    text = "\n".join(shown(Query(str(tmp_path), "rides").view(), 120, 40))
    assert "1,000 rows/s arrive, 667 can be processed" in text
    assert "answers: no plan on file says in which answers rows are missing" in text
    assert "faults: report 1" in text


def test_what_comes_from_data_cannot_steer_the_terminal(tmp_path: Path) -> None:
    query(tmp_path, point="\x1b[31mred\x07", cause="\x1b]0;title\x07 [bold]too many")
    text = "\n".join(shown(Query(str(tmp_path), "rides").view(), 120, 40))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]too many" in text


@pytest.mark.parametrize("key", ["q", "Ctrl-C"])
def test_q_and_ctrl_c_quit(tmp_path: Path, key: str) -> None:
    query(tmp_path)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jettison.cli", "top", str(tmp_path)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    try:
        seen, deadline_s = b"", time.monotonic() + 120
        while b"q: quit" not in seen and time.monotonic() < deadline_s:
            if select.select([ours], [], [], 1.0)[0]:
                seen += os.read(ours, 65536)
        assert b"twice too many rows" in seen
        if key == "q":
            os.write(ours, b"q")
        else:
            process.send_signal(signal.SIGINT)
        while process.poll() is None and time.monotonic() < deadline_s:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        os.close(ours)
