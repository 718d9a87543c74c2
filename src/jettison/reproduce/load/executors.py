"""Ours on a local cluster with one core an executor, in a process of its own. Usage: executors.py NUMBER SECONDS SEED."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def measure(executors: int, seconds: float, seed: int) -> tuple[float, float]:
    """Mean wait over the bound and share dropped, on a cluster of so many executors."""
    with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
        # Executors of a local cluster put their logs in a work directory; not where this process happens to be.
        environment = os.environ | {"SPARK_WORKER_DIR": f"{scratch}/work", "SPARK_LOCAL_DIRS": f"{scratch}/scratch"}
        command = [sys.executable, "-m", __name__, str(executors), str(seconds), str(seed)]
        done = subprocess.run(command, env=environment, cwd=Path(scratch), capture_output=True, text=True, check=True)
    over_bound, dropped = json.loads(done.stdout.strip().splitlines()[-1])
    return float(over_bound), float(dropped)


def main(executors: int, seconds: float, seed: int) -> None:
    """Measure in this process and print the result as JSON."""
    from jettison.reproduce.load.spark_figures import held_on
    from jettison.spark.session import local_session

    with local_session("jettison-load", master=f"local-cluster[{executors},1,1024]") as spark:
        print(json.dumps(held_on(spark, executors, seconds, seed)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
