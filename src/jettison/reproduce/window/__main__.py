"""Some of the experiments: `python -m jettison.reproduce.window figure10 table4 --quick`."""

from __future__ import annotations

from jettison.reproduce.some import run_some
from jettison.reproduce.window import experiments, run

if __name__ == "__main__":
    run_some("window", list(experiments()), run)
