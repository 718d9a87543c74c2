"""The server answers this machine alone, changes nothing, and says what went wrong in one sentence."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from jettison.errors import InvalidInput
from jettison.page.command import opened
from jettison.page.html_page import asset, whole
from jettison.page.prometheus import exposition
from jettison.page.server import PageServer, Watched
from page_ledgers import EVIL, query
from processes import nothing_is_left_of


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    query(tmp_path / "rides")
    query(tmp_path / "fares", point=EVIL, cause=EVIL)
    queries = Watched(opened([str(tmp_path / "rides"), str(tmp_path / "fares")]))
    with PageServer(queries, measures=exposition(queries)) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(server: PageServer, path: str, method: str = "GET", host: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=120)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    return connection.getresponse()


def test_queries_are_told_apart_by_what_differs_in_their_paths(server: PageServer) -> None:
    shown = json.load(asked(server, "/api/queries"))["queries"]
    assert [(one["name"], one["seen"], one["kept"]) for one in shown] == [
        ("rides", 40_000, 25_000),
        ("fares", 40_000, 25_000),
    ]
    assert json.load(asked(server, "/api/query/1"))["points"][0]["name"] == EVIL


def test_nobody_can_lead_a_browser_here_under_another_name(server: PageServer) -> None:
    for host in ("evil.example", "evil.example:80", "", "127.0.0.1.evil.example"):
        assert asked(server, "/api/query/0", host=host).status == 421
    for host in ("localhost:1", "127.0.0.1", "[::1]:9"):
        assert asked(server, "/api/query/0", host=host).status == 200


def test_the_page_is_read_only_and_loads_nothing_from_elsewhere(server: PageServer) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert asked(server, "/", method).status == 501
    answer = asked(server, "/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/api/query/7", "/../../etc/passwd", "/assets/page.js", "/api/query/-1"):
        assert asked(server, path).status == 404
    assert asked(server, "/", "HEAD").read() == b""


def test_data_never_becomes_markup() -> None:
    script = asset("page.js") + asset("panels.js")
    assert "innerHTML" not in script
    assert "insertAdjacentHTML" not in script
    assert "eval(" not in script
    assert "http://" not in script.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in script


def test_prometheus_reads_the_figures(server: PageServer) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    text = asked(server, "/metrics").read().decode()
    found = {
        (sample.name, sample.labels["query"], sample.labels.get("point")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["jettison_rows_seen_total", "rides", "rides"] == 40_000
    assert found["jettison_rows_dropped_total", "fares", EVIL] == 15_000
    assert found["jettison_latency_seconds", "rides", None] == 1.5
    assert found["jettison_latency_bound_seconds", "rides", None] == 3.0
    assert found["jettison_running", "rides", None] == 0.0
    assert found["jettison_lag_rows", "rides", None] == 1539
    assert found["jettison_lag_seconds", "rides", None] == 2.5
    assert found["jettison_left_rows", "rides", None] == 780


def test_the_grafana_dashboard_asks_for_figures_that_exist(server: PageServer) -> None:
    text = asked(server, "/metrics").read().decode()
    dashboard = json.loads(asset("grafana.json"))
    asked_for = {
        word
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for word in "".join(c if c.isalnum() or c == "_" else " " for c in target["expr"]).split()
        if word.startswith("jettison_")
    }
    assert len(asked_for) >= 8
    assert {"jettison_lag_rows", "jettison_lag_seconds", "jettison_left_rows", "jettison_error_bound"} <= asked_for
    assert all(f"# TYPE {name} " in text for name in asked_for)


def test_a_report_holds_all_it_needs_and_no_markup_from_data(tmp_path: Path) -> None:
    query(tmp_path, point=EVIL, cause=EVIL)
    page = whole([one.view() for one in opened([str(tmp_path)])])
    assert "src=" not in page.partition('<script type="application/json"')[0]
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in data
    assert json.loads(data)["queries"][0]["points"][0]["name"] == EVIL


def test_a_folder_that_is_none_and_a_port_that_is_taken_are_refused(tmp_path: Path, server: PageServer) -> None:
    with pytest.raises(InvalidInput, match="must be the folder of a query's checkpoint"):
        opened([str(tmp_path / "missing")])
    with pytest.raises(InvalidInput, match=r"must be free to listen on.*Hint"):
        PageServer(Watched([]), port=server.server_address[1])


class _Collector(BaseHTTPRequestHandler):
    received: list[bytes] = []  # noqa: RUF012  # one for all requests

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.mark.parametrize(
    ("given", "service"), [("team=a", "jettison"), ("team=a, service.name=mine", "mine"), ("", "jettison")]
)
def test_the_command_serves_sends_by_opentelemetry_and_ends_cleanly_by_ctrl_c(
    tmp_path: Path, given: str, service: str
) -> None:
    import gzip

    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    query(tmp_path)
    collector = HTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=collector.serve_forever, args=(0.02,), daemon=True).start()
    environment = os.environ | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}",
        "OTEL_METRIC_EXPORT_INTERVAL": "60000",  # what is sent is sent at the end
        "OTEL_RESOURCE_ATTRIBUTES": given,
        "NO_PROXY": "*",
    }
    command = [sys.executable, "-m", "jettison.cli", "dashboard", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.split("/")[2].rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", "/api/queries")
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        collector.shutdown()
        collector.server_close()
    assert (process.returncode, errors) == (0, "")
    assert nothing_is_left_of(process.pid)
    sent = ExportMetricsServiceRequest()
    body = _Collector.received[-1]
    sent.ParseFromString(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
    attributes = {one.key: one.value.string_value for one in sent.resource_metrics[0].resource.attributes}
    assert attributes["service.name"] == service
    names = {metric.name for scope in sent.resource_metrics[0].scope_metrics for metric in scope.metrics}
    assert {"jettison_rows_dropped", "jettison_latency_seconds"} <= names
