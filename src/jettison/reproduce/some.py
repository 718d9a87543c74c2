"""Some experiments of a paper: what `python -m jettison.reproduce.PAPER NAME...` runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from jettison.reproduce.report import Report, RunSettings


def run_some(paper: str, names: Sequence[str], run: Callable[[RunSettings, Sequence[str]], Report]) -> None:
    """Run the experiments that the command line names and save their report."""
    parser = argparse.ArgumentParser(description=f"experiments of the {paper} paper")
    parser.add_argument("names", nargs="*", choices=[*names, []], help="all of them if none is named")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(f"reproduce-{paper}"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = RunSettings(options.quick, options.seed, options.out, say=lambda line: print(line, flush=True))
    report = run(settings, options.names)
    quick = " --quick" if options.quick else ""
    command = f"python -m jettison.reproduce.{paper} {' '.join(options.names)}{quick} --seed {options.seed}"
    replace(report, command=command).save(options.out)
