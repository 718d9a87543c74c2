"""Some of the experiments: `python -m jettison.reproduce.aurora figure12 planners --quick`."""

from __future__ import annotations

from jettison.reproduce.aurora import PARTS, run
from jettison.reproduce.some import run_some

if __name__ == "__main__":  # processes that are started afresh import this module again
    run_some("aurora", list(PARTS), run)
