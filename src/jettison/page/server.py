"""The live page: a small server that reads checkpoints and changes nothing."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import msgspec

from jettison.errors import InvalidInput, refuse
from jettison.page.html_page import SERVED_POLICY, asset, charting_script
from jettison.page.view import Query, QueryView

_FRESH_S = 1.0
_JSON, _TEXT = "application/json", "text/plain; charset=utf-8"
_ASSETS = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/panels.js": ("panels.js", "text/javascript; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_SHORT = ("name", "state", "state_text", "bound_s", "latency_s", "seen", "kept")


class Watched:
    """Queries that are looked at, each at most once a second however many ask."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self.queries = tuple(queries)
        self._locks = [threading.Lock() for _ in queries]
        self._last: list[tuple[float, QueryView] | None] = [None] * len(queries)

    def view(self, place: int) -> QueryView:
        """The query with that position."""
        with self._locks[place]:
            last = self._last[place]
            if last is None or time.monotonic() - last[0] > _FRESH_S:
                last = self._last[place] = time.monotonic(), self.queries[place].view()
            return last[1]

    def views(self) -> list[QueryView]:
        """All of them."""
        return [self.view(place) for place in range(len(self.queries))]


class PageServer(ThreadingHTTPServer):
    """Serves the page of some queries. On a loopback address it answers only those who asked for this machine by name.

    Parameters
    ----------
    queries
        What is shown.
    host, port
        Where it listens; port 0 takes any that is free.
    measures
        Makes the text that Prometheus fetches; `None` where its package is not installed.
    """

    daemon_threads = True

    def __init__(
        self, queries: Watched, host: str = "127.0.0.1", port: int = 0, measures: Callable[[], bytes] | None = None
    ) -> None:
        self.queries, self.measures = queries, measures
        self.own_names = _own_names(host)
        if ":" in host:
            import socket

            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            hint = "choose another --port, or 0 for any that is free, and an address of this machine"
            got = f"{host} port {port} ({error.strerror or error})"
            refuse("`--host` and `--port` must be free to listen on", got, hint=hint, error=InvalidInput, cause=error)

    @property
    def url(self) -> str:
        """Where the page is."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}/"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _own_names(host: str) -> frozenset[str] | None:
    """Names under which the page may be asked for; `None` where anybody may: it listens to the network, as told."""
    return frozenset({"localhost", "127.0.0.1", "::1", host}) if is_loopback(host) else None


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "jettison", ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        # A name that somebody else's DNS points to this machine would make our page part of theirs.
        if self.server.own_names is not None and self._asked_for() not in self.server.own_names:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, b"ask for this machine by its own name\n")
            return
        try:
            self._answer(urlsplit(self.path).path)
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as error:  # the next look may succeed: a checkpoint can be out of reach for a while
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, f"{type(error).__name__}\n".encode())

    do_HEAD = do_GET

    def _answer(self, path: str) -> None:
        queries = self.server.queries
        if path in _ASSETS:
            name, kind = _ASSETS[path]
            self._send(HTTPStatus.OK, kind, asset(name).encode())
        elif path == "/plotly.js":
            script = charting_script().encode()
            self._send(HTTPStatus.OK, "text/javascript; charset=utf-8", script, cache="max-age=3600")
        elif path == "/api/queries":
            short = [{name: getattr(view, name) for name in _SHORT} for view in queries.views()]
            self._send(HTTPStatus.OK, _JSON, msgspec.json.encode({"queries": short}))
        elif path.startswith("/api/query/") and (place := path.removeprefix("/api/query/")).isdecimal():
            if int(place) < len(queries.queries):
                self._send(HTTPStatus.OK, _JSON, queries.view(int(place)).to_json())
            else:
                self._send(HTTPStatus.NOT_FOUND, _TEXT, b"no such query\n")
        elif path == "/metrics" and self.server.measures is not None:
            self._send(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", self.server.measures())
        elif path == "/metrics":
            missing = b'prometheus_client is not installed. Hint: pip install "/path/to/clone[metrics]"\n'
            self._send(HTTPStatus.NOT_IMPLEMENTED, _TEXT, missing)
        else:
            self._send(HTTPStatus.NOT_FOUND, _TEXT, b"nothing here\n")

    def _asked_for(self) -> str:
        return urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""

    def _send(self, status: HTTPStatus, kind: str, content: bytes, *, cache: str = "no-store") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", cache)
        self.send_header("Content-Security-Policy", SERVED_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the page asks every two seconds."""
