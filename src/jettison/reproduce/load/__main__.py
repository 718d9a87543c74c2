"""Some of the experiments: `python -m jettison.reproduce.load figure4 spark-figure10 --quick`."""

from __future__ import annotations

from jettison.reproduce.load import run
from jettison.reproduce.load.parts import PARTS
from jettison.reproduce.some import run_some

if __name__ == "__main__":
    run_some("load", list(PARTS), run)
