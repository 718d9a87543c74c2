"""A real Prometheus scrapes a running query, and answers all that the dashboard for Grafana asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from driver_process import kill_when, start_driver
from jettison.page.html_page import asset
from machine_tools import tool

PROMETHEUS = tool("prometheus")
pytestmark = [pytest.mark.spark, pytest.mark.long]
CONFIG = """
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: jettison
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""
KAFKA_ALONE = {"jettison_left_rows"}
"""Figures that a query over files does not have."""


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def free_port() -> int:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def asked(port: int, expression: str) -> list[Any]:
    """What Prometheus answers; nothing before it is up."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return list(json.load(opener.open(url, timeout=10))["data"]["result"])
    except OSError:
        return []


def expressions() -> list[str]:
    """All that the dashboard asks for, with its variable as "All" sets it."""
    panels = json.loads(asset("grafana.json"))["panels"]
    asked_for = [target["expr"].replace("$query", ".+") for panel in panels for target in panel.get("targets", ())]
    return [one for one in asked_for if not any(name in one for name in KAFKA_ALONE)]


def until_answered(port: int, within_s: float = 400.0) -> Callable[[], bool]:
    """Whether every expression has data; fails with those that have none when the time is over."""
    missing, end_s = expressions(), time.monotonic() + within_s

    def answered() -> bool:
        missing[:] = [one for one in missing if not asked(port, one)]
        assert time.monotonic() < end_s, f"no data for {missing}"
        return not missing

    return answered


def test_prometheus_has_data_for_all_that_the_dashboard_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(expressions()) >= 12
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]))
    (tmp_path / "checkpoint").mkdir()
    dashboard = (sys.executable, "-m", "jettison.cli", "dashboard", str(tmp_path / "checkpoint"), "--port", "0")
    port = free_port()
    with running(*dashboard) as page:
        assert page.stdout is not None
        url = next(line for line in page.stdout if "http://" in line)
        (tmp_path / "prometheus.yml").write_text(CONFIG % urllib.parse.urlsplit(url.split()[0]).port)
        told = ["config.file", str(tmp_path / "prometheus.yml")], ["storage.tsdb.path", str(tmp_path / "data")]
        address = ["web.listen-address", f"127.0.0.1:{port}"]
        with running(PROMETHEUS, *(f"--{name}={value}" for name, value in (*told, address))):
            kill_when(start_driver("watched_driver", tmp_path, str(tmp_path)), until_answered(port))
            assert asked(port, "jettison_rows_dropped_total > 0")
            assert sorted(one["metric"]["answer"] for one in asked(port, "jettison_error_bound")) == ["fare", "rides"]
