"""Spark Connect: what works there works, and what cannot is refused before anything starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CLIENT = Path(__file__).with_name("connect_client.py")


@pytest.mark.long
def test_a_guarded_query_runs_over_connect_and_counts_by_observe(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
    (tmp_path / "in").mkdir()
    rows = [{"id": i, "key": f"k{i % 3}", "value": 1.0} for i in range(2_000)]
    (tmp_path / "in" / "rows.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    client = subprocess.Popen([sys.executable, str(CLIENT), str(tmp_path)], cwd=tmp_path, start_new_session=True)
    result = tmp_path / "result.json"
    try:
        deadline = time.monotonic() + 400
        while not result.exists() and client.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        outcome = json.loads(result.read_text())
    finally:
        # A local Connect server outlives its client's session by a minute; nothing more is to be learned from it.
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
    counts = outcome["batch"]["points"]["rows"]
    assert counts["seen"] == 2_000
    assert 850 < counts["kept"] < 1_150
    assert counts["exact"]
    assert outcome["batch"]["plan_version"] == 1
    assert "accounting='metrics' needs the driver's web interface" in outcome["refused"]
    assert "Hint: pass accounting='observe'" in outcome["refused"]
