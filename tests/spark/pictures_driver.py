"""Takes the pictures of the page in the documents, of queries that run. Usage: pictures_driver.py docs [SECONDS]."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from driver_session import session
from playwright.sync_api import sync_playwright
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.storage import home
from jettison.page.command import opened
from jettison.page.server import PageServer, Watched
from live_stream import Feed, costly

BOUND, LEAST = "10 seconds", 15  # batches
RATES = {"rides": (300.0, 1600.0), "fares": (250.0, 250.0), "windows": (300.0, 1600.0)}
"""Rows a second at first and from a third of the time on; each that is kept costs a millisecond."""
UP_TO_HERE = "one => Math.ceil(one.getBoundingClientRect().bottom) + 12"
PICTURES = {
    "page.png": ("rides", "#lag-section", {"viewport": {"width": 1000, "height": 1400}, "color_scheme": "light"}),
    "page-phone.png": (
        "windows",
        "#rows-section",
        {"viewport": {"width": 390, "height": 1400}, "color_scheme": "dark"},
    ),
}
"""The query that is chosen, what is the last to be seen of it, and by whom."""


def answers(rows: DataFrame) -> DataFrame:
    """What a query computes, of windows of two seconds."""
    windows = costly(rows, 1.0).groupBy(F.window("at", "2 seconds"))
    return windows.agg(jt.count().alias("rides"), jt.avg("value").alias("fare"))


def started(spark: SparkSession, name: str, folder: Path, feed: Feed) -> Any:
    """A query of that name: one drops whole windows, the others rows at random."""
    policy = jt.WindowDrop(time="at", window="2 seconds", max_gap=5) if name == "windows" else jt.UniformDrop()
    shedder = jt.Shedder(latency=BOUND, checkpoint=folder / name / "checkpoint", policy=policy)
    stream = feed.stream(spark).withWatermark("at", "1 second")
    rows = shedder.guard(stream, row_id="id", arrival="at", name=name)
    if name != "windows":
        return shedder.start(shedder.watch(rows, answers).writeStream.format("noop"))
    whole = costly(rows, 1.0).groupBy(F.window("at", "2 seconds")).agg(F.max("value").alias("peak"))
    return shedder.start(shedder.deliver(whole).writeStream.format("noop"))


def take(url: str, target: Path) -> None:
    """All pictures, of a page that is served."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        for file, (query, last, seen_by) in PICTURES.items():
            page = browser.new_context(**seen_by, device_scale_factor=1.5, timezone_id="UTC").new_page()
            page.goto(f"{url}#{list(RATES).index(query)}")
            page.wait_for_selector("#rows .main-svg")
            page.wait_for_timeout(1000)
            size = {"width": seen_by["viewport"]["width"], "height": page.eval_on_selector(last, UP_TO_HERE)}
            page.screenshot(path=target / file, clip={"x": 0, "y": 0, **size})
        browser.close()


def main(target: Path, for_s: float) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        spark = session("local[4]", folder, {})
        ending.callback(spark.stop)
        feeds = {name: ending.enter_context(Feed(folder / name / "in", rates[0])) for name, rates in RATES.items()}
        queries = [started(spark, name, folder, feed) for name, feed in feeds.items()]
        time.sleep(for_s / 3)
        for name, feed in feeds.items():
            feed.rows_per_s = RATES[name][1]
        time.sleep(2 * for_s / 3)
        batches = {name: home(folder / name / "checkpoint") / "ledger" for name in RATES}
        few = {name: found for name, one in batches.items() if (found := jt.Ledger(one).totals().batches) < LEAST}
        if few:
            raise SystemExit(f"the machine is too busy: batches {few}, where {LEAST} make a picture")
        with PageServer(Watched(opened([str(folder / name / "checkpoint") for name in RATES]))) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            take(server.url, target)
            server.shutdown()
        for query in queries:
            query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 150.0)
