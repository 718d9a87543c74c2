"""A standalone cluster on the loopback address: a master and workers of one core each, as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from jettison.lab.bench.kafka import _GUARDED, _free_ports

BIN = Path(pyspark.__file__).parent / "bin"
_UP_WITHIN_S = 60.0


class Cluster:
    """What a driver connects to; all of it ends with the context that made it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, self._page = _free_ports(2)
        self.master = f"spark://127.0.0.1:{port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master.Master", "127.0.0.1", "--port", str(port), "--webui-port", str(self._page))
        self._await_workers(0)

    def add_worker(self) -> None:
        """Have one more worker, and wait until the master knows it."""
        before = self._registered()
        scratch = self._folder / f"worker{len(self._processes)}"
        # Each is a machine by its address: Spark runs no second copy of a task on the first one's.
        host = f"127.0.0.{len(self._processes)}"
        size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(scratch)]
        self._start("worker.Worker", host, *size, self.master)
        self._await_workers(before + 1)

    def _start(self, role: str, host: str, *arguments: str) -> None:
        command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{role}", "--host", host, *arguments]
        # Nothing is to be reached from outside this machine, and all of it looks after small things only.
        environment = os.environ | {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
        guarded = ["/bin/sh", "-c", _GUARDED, "cluster", *command]  # ends with this process, however that ends
        with (self._folder / f"process{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(guarded, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
        self._processes.append(process)

    def _registered(self) -> int:
        """How many workers the master has had; lost ones stay on its page."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=10.0) as page:
            return len(json.load(page)["workers"])

    def _await_workers(self, count: int) -> None:
        deadline = time.monotonic() + _UP_WITHIN_S
        while True:
            try:
                if self._registered() == count:
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline, f"{count} workers within {_UP_WITHIN_S:g} s"
            time.sleep(0.1)

    def stop(self) -> None:
        for process in reversed(self._processes):
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


@contextmanager
def cluster(folder: Path, *, workers: int) -> Iterator[Cluster]:
    """A cluster with so many workers, whose files lie in `folder`."""
    running = Cluster(folder)
    try:
        for _ in range(workers):
            running.add_worker()
        yield running
    finally:
        running.stop()
