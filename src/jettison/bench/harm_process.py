"""Starts one case in a process of its own: a fresh interpreter and a fresh JVM."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from jettison.bench.harm_case import Case
from jettison.bench.kafka_jars import CONNECTOR, jars
from jettison.errors import JettisonError, explain

_RUN = "from jettison.bench.harm_run import main; main()"
_MEASURE = "from jettison.bench.harm_capacity import main; main()"
_SLACK_S = 240.0
"""For the JVM to start and the books to close, on a busy machine."""


def run_cold(case: Case, out: Path, *, address: str | None = None) -> list[dict[str, Any]]:
    """Run a case in a new process and return its records: a header, then one a batch.

    Parameters
    ----------
    case
        What to run.
    out
        File for the records.
    address
        The Kafka broker, for cases that read from one.
    """
    return _in_process(_RUN, case, out, address)


def measure_warm(case: Case, out: Path, *, address: str | None = None) -> list[dict[str, Any]]:
    """Run a saturated case in a new process until it is warm, then again with what it can process; return the latter."""
    return _in_process(_MEASURE, case, out, address)


def _in_process(program: str, case: Case, out: Path, address: str | None) -> list[dict[str, Any]]:
    environ = dict(os.environ)
    if case.source == "kafka":
        environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {shlex.quote(','.join(map(str, jars(CONNECTOR))))} pyspark-shell"
    order = json.dumps({"case": case.to_dict(), "address": address, "out": str(out.absolute())})
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        input=order + "\n",
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
        timeout=case.duration_s + _SLACK_S,
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["silence"])[-1]
        hint = "run it alone with --only to see more"
        raise JettisonError(explain("the case's process to end well", said, where=f"case {case.name!r}", hint=hint))
    return [json.loads(line) for line in out.read_text().splitlines()]
