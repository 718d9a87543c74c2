"""Some of the experiments: `python -m jettison.reproduce.window figure10 table4 --quick`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from jettison.reproduce.report import RunSettings
from jettison.reproduce.window import experiments, run


def main() -> None:
    """Run what was asked for and save its report."""
    parser = argparse.ArgumentParser(description="experiments of the window paper")
    parser.add_argument("names", nargs="*", choices=[*experiments(), []], help="all of them if none is named")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("reproduce-window"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = RunSettings(options.quick, options.seed, options.out, say=lambda line: print(line, flush=True))
    report = run(settings, options.names)
    quick = " --quick" if options.quick else ""
    command = f"python -m jettison.reproduce.window {' '.join(options.names)}{quick} --seed {options.seed}"
    replace(report, command=command).save(options.out)


if __name__ == "__main__":
    main()
