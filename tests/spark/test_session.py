"""The commands' own sessions are not to be reached from other machines, and forget as Spark does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os
from jettison.spark.session import local_session

with local_session("listening") as spark:
    (port,) = [int(spark.sparkContext.uiWebUrl.rsplit(":", 1)[1])]
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in open(table).readlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            if state == "0A" and int(address.split(":")[1], 16) == port:
                print("listens", address.split(":")[0])
    print("keeps", [name for name, _ in spark.sparkContext.getConf().getAll() if "retained" in name or "numRecent" in name])
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not show its sockets in /proc")
def test_it_listens_on_this_machine_alone_and_keeps_no_more_than_spark_does(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    listens = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("listens")]
    # 127.0.0.1, as the kernel writes it; of version 6 sockets the last part.
    assert [address[-8:] for address in listens] == ["0100007F"]
    assert "keeps []" in done.stdout, "what grows with every batch would grow for as long as `jettison run` does"
