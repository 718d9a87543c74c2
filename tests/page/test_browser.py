"""The page in a real browser: it draws, takes keys, fits a phone, follows what is added, and data stays data."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import jettison as jt
from jettison.core import storage
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.costs.cost_hashing import SharedHashes
from jettison.costs.function_status import CostStatus
from jettison.costs.task_report import TaskReport
from jettison.page.command import opened
from jettison.page.html_page import whole
from jettison.page.panels.network_picture import NetworkPicture
from jettison.page.server import PageServer, Watched
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.window.window_marks import WindowMarks
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import Order, Orders, record_of
from jettison.settle.settled_record import Settled, save
from jettison.settle.touched_windows import Look, Lost, Window
from machine_tools import tool
from page_ledgers import EVIL, NOW_S, query

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: make setup installs it")
HALF = Budget(0.5, 0.5, 3.0, "twice too many rows")
CHROMIUM = tool("chromium", "chromium-browser", "google-chrome")

COUNT_OBSERVED = """
window.observed = new Set();
for (const [name, does] of [["observe", "add"], ["unobserve", "delete"]]) {
  const given = ResizeObserver.prototype[name];
  ResizeObserver.prototype[name] = function (target) { observed[does](target); return given.call(this, target); };
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # In containers Chromium cannot make a sandbox of its own; it sees this page alone.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened_page(browser: Any) -> Iterator[Any]:
    """Opens pages, and fails where a script did, or where anything but the page itself was asked for."""
    contexts, wrong = [], []

    def open_page(url: str, **settings: Any) -> Any:
        context = browser.new_context(**settings)
        contexts.append(context)
        context.add_init_script(COUNT_OBSERVED)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on(
            "request", lambda made: wrong.append(made.url) if not made.url.startswith((base(url), "data:")) else None
        )
        page.goto(url)
        page.wait_for_selector("#rows .main-svg")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def base(url: str) -> str:
    return url.partition("#")[0].removesuffix("report.html") if url.startswith("file:") else url.partition("#")[0]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Any]]:
    ledger = query(tmp_path / "rides", ended=False)
    marks = WindowMarks((7,), ("kdk",), ((None, 90, None),), next_unit=10, row_share=0.6)
    policy = jt.WindowDrop(time="at", window=("10 seconds", "5 seconds"), max_gap=3)
    query(tmp_path / "fares", point=EVIL, cause=EVIL, setting=marks, policy=policy)
    lost = Lost(3, 3, EVIL, 0, 9)
    save(storage.home(tmp_path / "fares"), Settled(looks=(Look(3, 4, (Window(0, 10), Window(10, 20))),), lost=(lost,)))
    with PageServer(Watched(opened([str(tmp_path / "rides"), str(tmp_path / "fares")]))) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
        thread.start()
        yield server.url, ledger
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [1100, 1280])
def test_charts_leave_no_hole_and_no_column_of_the_drop_points_is_cut(
    served: Any, opened_page: Any, width: int
) -> None:
    page = opened_page(served[0], viewport={"width": width, "height": 1130})
    page.locator("#points td").first.wait_for()
    assert page.evaluate("points.offsetWidth <= points.parentElement.clientWidth")
    boxes = page.evaluate("""[...document.querySelectorAll("main section")].map(one => one.getBoundingClientRect())
        .filter(one => one.width).map(one => [one.left, one.right, one.top, one.bottom].map(Math.round))""")
    rows: dict[int, list[list[int]]] = {}
    for box in boxes:
        rows.setdefault(box[2], []).append(box)
    assert len(rows) == 5, "two rows of two charts, one chart that is left over, the table, the changes"
    for row in rows.values():
        assert (min(box[0] for box in row), max(box[1] for box in row)) == (16, width - 16)
        assert len({box[3] for box in row}) == 1


def test_a_chart_is_as_wide_as_its_card_also_when_the_one_beside_it_goes(tmp_path: Path, opened_page: Any) -> None:
    query(tmp_path / "rides")  # error bounds stand alone
    query(tmp_path / "few", batches=5)  # without bounds and model rows behind the source stand alone
    file = tmp_path / "report.html"
    file.write_text(whole([one.view() for one in opened([str(tmp_path / "rides"), str(tmp_path / "few")])]), "utf-8")
    page = opened_page(f"file://{file}", viewport={"width": 1100, "height": 800})
    wide = """() => [...document.querySelectorAll(".chart")].filter(one => one.offsetWidth)
        .every(one => Math.abs(one.offsetWidth - one.querySelector(".main-svg").getBoundingClientRect().width) < 2)"""
    for tab in (1, 0, 1):
        page.click(f"#tab-{tab}")
        page.wait_for_function(wide, timeout=20_000)
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function(wide, timeout=20_000)


def test_a_query_without_batches_shows_no_charts_of_the_query_before(tmp_path: Path, opened_page: Any) -> None:
    query(tmp_path / "rides")
    query(tmp_path / "none", batches=0)
    file = tmp_path / "report.html"
    file.write_text(whole([one.view() for one in opened([str(tmp_path / "rides"), str(tmp_path / "none")])]), "utf-8")
    page = opened_page(f"file://{file}")
    page.click("#tab-1")
    assert page.inner_text("#title") == "none"
    assert page.locator(".main-svg:visible").count() == 0
    assert page.locator("#none").is_visible()
    page.click("#tab-0")
    assert page.locator("#rows .main-svg:visible").count() > 0
    assert not page.locator("#none").is_visible()


def test_a_slow_answer_paints_no_query_that_is_not_chosen_any_more(served: Any, opened_page: Any) -> None:
    page = opened_page(served[0] + "#1")
    held: list[Any] = []
    page.route("**/api/query/0", lambda route: held.append(route))
    page.click("#tab-0")
    page.wait_for_timeout(300)
    page.click("#tab-1")
    page.wait_for_timeout(300)
    assert held
    with page.expect_response("**/api/query/0"):
        held[0].continue_()
    page.wait_for_timeout(300)
    assert page.inner_text("#title") == "fares"
    assert page.inner_text("#queries [aria-selected=true] b") == "fares"


def test_latency_is_held_against_the_bound_of_its_time(tmp_path: Path, opened_page: Any) -> None:
    ledger = query(tmp_path / "a", ended=False)  # batches of 1.5 s, one of 3.5 s, under a bound of 3 s
    ledger.order(NOW_S + 20.5, "a latency bound of 1 s", 1.0, {})
    (view,) = (one.view() for one in opened([str(tmp_path / "a")]))
    assert view.bounds == [(NOW_S, 3.0), (NOW_S + 20.5, 1.0)]
    file = tmp_path / "report.html"
    file.write_text(whole([view]), "utf-8")
    page = opened_page(f"file://{file}")
    assert "21 of 40 points lie above" in page.get_attribute("#latency", "aria-label")
    drawn = page.evaluate("document.getElementById('latency').data.find(trace => trace.name === 'bound').y")
    assert drawn == [3.0, 1.0, 1.0]
    assert page.locator("#latency .shapelayer path").count() == 2, "what lies above the bound is shaded"


def test_a_name_that_looks_like_a_template_of_the_charts_stays_a_name(tmp_path: Path, opened_page: Any) -> None:
    name = "%{y} of %{x}"
    ledger = query(tmp_path / "a", ended=False)
    said = AnswerBounds(answers=9, bounded=9, few_rows=0, median=0.5, p95=0.75)
    for number in (40, 41):
        stats = Stats(number, NOW_S + number, 0.9, {"rides": PointStats(9, 9)}, plan_version=2)
        ledger.batch(stats, latency_s=1.0, answers={name: said})
    file = tmp_path / "report.html"
    file.write_text(whole([one.view() for one in opened([str(tmp_path / "a")])]), "utf-8")
    page = opened_page(f"file://{file}")
    page.locator("#bounds .nsewdrag").scroll_into_view_if_needed()
    box = page.locator("#bounds .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    page.locator("#bounds .hoverlayer .legend").wait_for()
    said_there = page.locator("#bounds .hoverlayer").text_content()
    assert said_there.count(name) == 2, said_there


def test_a_finger_on_a_chart_scrolls_the_page(served: Any, opened_page: Any) -> None:
    page = opened_page(served[0], viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.locator("#latency .nsewdrag").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box, before = page.locator("#latency .nsewdrag").bounding_box(), page.evaluate("window.scrollY")
    x, y, touch = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, page.context.new_cdp_session(page)
    for place, kind in enumerate(["touchStart", *["touchMove"] * 10]):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y - 15 * place}]})
        page.wait_for_timeout(16)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(300)
    assert page.evaluate("window.scrollY") > before + 100


def test_a_share_that_is_not_all_does_not_look_like_it(served: Any, opened_page: Any) -> None:
    page = opened_page(served[0])
    said = page.evaluate("[1, 0.9999, 0.996, 0.99, 0.05, 0.0001, 0].map(percent)")
    assert [one.replace("\xa0", " ") for one in said] == [
        "100 %", "> 99 %", "> 99 %", "99 %", "5.0 %", "< 0.1 %", "0 %",
    ]  # fmt: skip


def test_clocks_count_to_24_also_where_people_do_not(served: Any, opened_page: Any) -> None:
    page = opened_page(served[0], locale="en-US")
    page.locator("#fresh", has_text="updated").wait_for()
    assert "M" not in page.inner_text("#fresh").partition("updated")[2]


def test_the_page_says_what_is_on_record_and_follows_it_without_a_reload(served: Any, opened_page: Any) -> None:
    url, ledger = served
    page = opened_page(url)
    page.evaluate("window.same = true")
    assert page.inner_text("#title") == "rides"
    assert "Plan 2: twice too many rows" in page.inner_text("#cause")
    assert "25K of 40K" in page.inner_text("#tiles")
    assert "twice too many rows" in page.inner_text("#changes")
    assert page.locator("#latency .main-svg").count() > 0
    assert page.locator("#model .main-svg").count() > 0
    assert page.locator("#bounds .main-svg").count() > 0
    assert page.locator("#lag .main-svg").count() > 0
    assert "rows, for 2.50 s" in page.inner_text("#tiles")
    assert EVIL in page.get_attribute("#bounds", "aria-label")
    assert page.evaluate("window.broken") is None
    assert "above" in page.get_attribute("#latency", "aria-label")
    ledger.batch(Stats(40, NOW_S + 40, 0.9, {"rides": PointStats(100_000, 100)}, plan_version=2), latency_s=9.0)
    page.locator("#tiles", has_text="9.00 s").wait_for(timeout=120_000)
    assert page.evaluate("window.same") is True


def test_what_a_reader_looks_at_stays_while_the_page_follows_the_query(
    served: Any, opened_page: Any, tmp_path: Path
) -> None:
    lost = tuple(Lost(n, n, f"file {n} is gone", 10 * n, 10 * n + 9) for n in range(40))
    save(storage.home(tmp_path / "fares"), Settled(lost=lost))
    # Of the seventh to the last one is not on record, and one can have no answer: neither counts.
    marks = WindowMarks((11,), ("dkv",), ((90, None, 95),), next_unit=14, row_share=0.6)
    ledger = Ledger.open(storage.home(tmp_path / "fares") / "ledger")
    page = opened_page(served[0] + "#1")
    page.wait_for_selector("#panels .main-svg")
    page.evaluate("""() => {
        window.box = document.querySelector("#panels .scroll");
        window.chart = document.querySelector("#panels .chart");
        box.focus(); box.scrollTop = 300;
    }""")
    observed = page.evaluate("observed.size")
    for number in range(3):
        ledger.batch(Stats(50 + number, NOW_S + 50, 0.9, {EVIL: PointStats(1000, 500)}, plan_version=2), latency_s=1.0)
        page.locator("#tiles", has_text=f"in {41 + number} batches").wait_for(timeout=120_000)
    assert page.evaluate("box === document.activeElement && box.isConnected && box.scrollTop > 200")
    assert page.evaluate("chart === document.querySelector('#panels .chart')")
    ledger.plan(NOW_S + 60, DropPlan(3, {EVIL: marks}, cause="more"))
    page.locator("#panels", has_text="2 of the last 5 windows").wait_for(timeout=120_000)
    assert page.evaluate("chart === document.querySelector('#panels .chart') && box === document.activeElement")
    assert page.evaluate("observed.size") == observed
    page.click("#tab-0")
    page.locator("#title", has_text="rides").wait_for()
    assert page.locator("#panels section").count() == 0
    assert page.evaluate("observed.size") < observed, "a chart that is gone is not looked at any more"


def test_the_page_is_not_calm_while_a_batch_runs_for_longer_than_the_bound(
    served: Any, opened_page: Any, tmp_path: Path
) -> None:
    home, now_s = storage.home(tmp_path / "rides"), time.time()
    home.replace("owner.json", b'{"run": "a", "at_s": %d}' % (now_s + 3600))
    (home.parent / "offsets").replace("40", b'v1\n{"batchTimestampMs":%d}\n0' % (now_s * 1e3 - 10_000e3))
    page = opened_page(served[0])
    page.locator("#state", has_text="running; batch 40 has taken 10").wait_for(timeout=120_000)
    page.locator("#tiles .over", has_text="the batch that runs has taken").wait_for(timeout=120_000)


def test_what_a_person_sets_is_on_the_timeline_and_beside_the_cause(served: Any, opened_page: Any) -> None:
    url, ledger = served
    page = opened_page(url)
    given = Orders(keep_everything=Order(author="ann", reason=EVIL, at_s=NOW_S))
    ledger.order(NOW_S + 41, given.changes(Orders()), 3.0, record_of(given))
    page.locator("#cause", has_text=f"Set: keep everything (set by ann: {EVIL}).").wait_for(timeout=120_000)
    assert page.inner_text("#changes .order b") == "order"
    assert f"keep everything (set by ann: {EVIL})" in page.inner_text("#changes .order span")
    assert page.evaluate("window.broken") is None


def test_queries_are_chosen_by_the_keyboard_alone_and_names_from_data_stay_text(served: Any, opened_page: Any) -> None:
    page = opened_page(served[0])
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "tab":
            break
    page.keyboard.press("ArrowRight")
    page.locator("#title", has_text="fares").wait_for()
    page.wait_for_selector("#panels .main-svg")
    assert page.evaluate("document.activeElement.textContent").startswith("fares")
    assert EVIL in page.inner_text("#points")
    assert EVIL in page.inner_text("#changes")
    page.select_option("#point", EVIL)
    page.locator("#rows .main-svg").first.hover()
    page.wait_for_timeout(300)
    assert page.evaluate("window.broken") is None
    assert page.locator("main img").count() == 0
    assert "1 of the last 3 windows are dropped" in page.inner_text("#panels")
    assert "0 settled, 1 open, 1 lost" in page.inner_text("#panels")
    assert EVIL in page.inner_text("#panels table")


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_sticks_out_to_the_side_on_a_phone(served: Any, opened_page: Any, width: int) -> None:
    page = opened_page(served[0], viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_is_dark(served: Any, opened_page: Any) -> None:
    brightness = "parseInt(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])"
    assert opened_page(served[0], color_scheme="dark").evaluate(brightness) < 60
    assert opened_page(served[0], color_scheme="light").evaluate(brightness) > 200


def test_a_report_opens_without_a_server(tmp_path: Path, opened_page: Any) -> None:
    query(tmp_path / "a")
    query(tmp_path / "b", point=EVIL, cause=EVIL)
    file = tmp_path / "report.html"
    file.write_text(whole([one.view() for one in opened([str(tmp_path / "a"), str(tmp_path / "b")])]), "utf-8")
    page = opened_page(f"file://{file}")
    assert "25K of 40K" in page.inner_text("#tiles")
    page.click("#tab-1")
    page.locator("h2#title", has_text="b").wait_for()
    assert EVIL in page.inner_text("#points")
    assert page.evaluate("window.broken") is None


def groups(checkpoint: Path) -> None:
    policy = jt.ConceptDrop(group=EVIL, time="at", window="10 minutes")
    setting = GroupDrop(0.4, 600_000_000, (0,), (0.9,), ((-5, 77),), ((0.25, 0.01),), new_keep_fraction=0.7)
    ledger = query(checkpoint, point=EVIL, setting=setting, policy=policy)
    counts = {"point": EVIL, "rows": 9, "groups": 2, "pooled_rows": 0}
    for pane in range(3):
        ledger.found(NOW_S, {"record": "concept", "start_us": pane * 600_000_000, "distance": 0.1 * pane, **counts})


def regions(checkpoint: Path) -> None:
    sample = {EVIL: np.linspace(0.0, 100.0, 500), "zone": np.array([EVIL, "b"] * 250)}
    space = [jt.Attribute.number(EVIL, 0, 100), jt.Attribute.category("zone", [EVIL, "b"])]
    policy = jt.Sifter(jt.RangeQueries(space, ["zone = 'b'"]), sample, regions=8)
    seen = Stats(4, 0.0, 1.0, {EVIL: PointStats(900, 900)})
    query(checkpoint, point=EVIL, setting=policy.plan(seen, HALF).points[EVIL], policy=policy)


def network(checkpoint: Path) -> None:
    boxes = [Box("parse", ("packets",), "map", cost=4.0), Box("alarms", ("parse",), selectivity=0.01)]
    graph = QueryGraph([Input("packets")], boxes, [Output("archive", "parse"), Output("pager", "alarms")])
    policy = NetworkDrop(graph)
    seen = Stats(4, 0.0, 1.0, {"packets": PointStats(900, 900)})
    query(checkpoint, policy=policy).plan(NOW_S + 100, policy.plan(seen, HALF))


def keys(checkpoint: Path) -> None:
    ledger = query(checkpoint)
    report = TaskReport.empty(SharedHashes(1, 8, seed=1))
    report.seen, report.kept, report.top = 900, 800, {f"@{EVIL}": (4.0, 0.1), "@cheap": (796.0, 0.08)}
    CostStatus.of(report, max_wait_s=0.5).report(EVIL).lay_down(storage.home(checkpoint), "load_aware")
    for number in range(3):
        facts = {"busy_s": 0.5, "spared_s": 0.25, "longest_wait_s": 0.1, "dropped_keys": {EVIL: 40}}
        ledger.counted("function", NOW_S + number, number, EVIL, 300, 260, **facts)


def renamed(view: Any) -> Any:
    """With names that no network is given: whatever a ledger holds, they are drawn as text."""
    for panel in view.panels:
        if isinstance(panel, NetworkPicture):
            panel.nodes = [replace(node, name=EVIL + node.name) for node in panel.nodes]
            panel.edges = [replace(one, source=EVIL + one.source, target=EVIL + one.target) for one in panel.edges]
            panel.at_input = {EVIL + name: share for name, share in panel.at_input.items()}
    return view


@pytest.mark.parametrize(
    ("made", "said", "drawn"),
    [
        (groups, "2 groups are thinned", {".barlayer .point": 2, ".scatterlayer .trace": 1}),
        (regions, "Share kept by region", {".heatmaplayer image": 1, ".xtitle": 1, ".ytitle": 1}),
        (network, "rows are dropped on this way", {"svg.network rect": 5, "svg.network path": 4}),
        (keys, "most dropped keys", {".scatterlayer .trace": 3, "table": 2}),
    ],
)
def test_what_only_a_mechanism_can_show_is_drawn_and_its_names_stay_text(
    tmp_path: Path, opened_page: Any, made: Any, said: str, drawn: dict[str, int]
) -> None:
    made(tmp_path / "a")
    file = tmp_path / "report.html"
    file.write_text(whole([renamed(one.view()) for one in opened([str(tmp_path / "a")])]), "utf-8")
    page = opened_page(f"file://{file}")
    panel = page.locator("#panels section").first
    assert said in panel.inner_text()
    assert EVIL in panel.inner_text()
    assert {selector: panel.locator(selector).count() for selector in drawn} == drawn
    charts = panel.locator(".chart")
    for place in range(charts.count()):
        charts.nth(place).hover()
        page.wait_for_timeout(300)
    assert page.evaluate("window.broken") is None
    assert page.locator("main img").count() == 0
