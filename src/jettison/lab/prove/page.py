"""docs/rivals.md, made of stored results: `python -m jettison.lab.prove.page docs/rivals > docs/rivals.md`.

No figure is typed in: each follows from the samples in the JSON files of `jettison bench prove --json`.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jettison.lab import intervals
from jettison.lab.prove.judge import LARGER_IS_BETTER

Samples = Mapping[str, Mapping[str, Sequence[float]]]
"""Figures of the runs, by entrant and measure."""

_COLUMNS = {
    "latency_p50_s": "p50 [s]",
    "latency_p95_s": "p95 [s]",
    "latency_p99_s": "p99 [s]",
    "late_windows": "windows late",
    "rows_processed": "rows processed",
    "error_mean": "error",
    "error_p95": "error p95",
    "groups_missing": "groups missing",
    "utility": "utility",
    "coverage": "coverage",
    "recovery_s": "recovery [s]",
    "cpu_s": "task CPU [s]",
}
_JUDGED = ("error_mean", "late_windows", "utility")
_TWICE = 2.0
_HEAD = """# Jettison beside its rivals

<!-- Made by `python -m jettison.lab.prove.page docs/rivals > docs/rivals.md`; do not edit. -->

The same rows, bound and machine for all: `jettison bench prove --workload W --repeat 5 --json docs/rivals/W.json`.
A process of its own lands rows on schedule and waits for nobody. Capacity is what plain Spark processes, measured
first; loads are multiples of it. Rivals that have a setting are tuned beforehand on the same load, which they are told;
Jettison is told nothing. Then all run in turn, the order reversed every other time.

A run that died counts against its side. Figures are medians of the runs; of errors,
late windows and utility with the 95 % interval of the mean. *Late*: answered
later than two bounds after the window was due (one batch closes it, the next brings the answer), or never. *Error*:
mean relative error of the answers that came, late ones too; *utility*: 1 less the error, and 0 where the answer is late
or missing, over all answers. Beside each rival stands what the pairs say of Jettison: better, worse, or cannot tell.
Samplers by key and the PID run on Jettison's own guard, without its controller, and so pay for it.
"""


def page(results: Iterable[Mapping[str, Any]]) -> str:
    """The page of these results."""
    workloads: dict[str, list[Mapping[str, Any]]] = {}
    for row in results:
        workloads.setdefault(row["config"]["workload"], []).append(row)
    if not workloads:
        return f"{_HEAD}\n**Nothing has been measured yet on a machine of its own.**\n"
    samples = {name: _samples(rows) for name, rows in workloads.items()}
    sections = [_section(name, rows[0]["config"], samples[name]) for name, rows in workloads.items()]
    bounds = {name: float(rows[0]["config"]["bound_s"]) for name, rows in workloads.items()}
    return "\n".join([_HEAD, _goals(samples, bounds), *sections])


def verdict(measure: str, ours: Sequence[float], other: Sequence[float]) -> str:
    """What the pairs say of ours: better or worse if all of the interval of the difference is.

    >>> verdict("error_mean", [0.1, 0.11, 0.1], [0.2, 0.22, 0.2]), verdict("utility", [0.8, 0.9], [0.9, 0.8])
    ('better', 'cannot tell')
    """
    found = intervals.mean([a - b for a, b in zip(ours, other, strict=True)])
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    low, high = sorted((sign * found.lower, sign * found.upper))
    if math.isnan(found.value):
        return "cannot tell"
    return "better" if high < 0.0 else "worse" if low > 0.0 else "cannot tell"


def twice_as_good(ours: Sequence[float], other: Sequence[float]) -> bool:
    """Whether ours, of which less is better, is half of the other's or less, by all of the interval.

    >>> twice_as_good([0.1, 0.1, 0.1], [0.3, 0.31, 0.3]), twice_as_good([0.1, 0.3], [0.3, 0.3])
    (True, False)
    """
    return intervals.mean([_TWICE * a - b for a, b in zip(ours, other, strict=True)]).upper < 0.0


def _goals(samples: Mapping[str, Samples], bounds: Mapping[str, float]) -> str:
    worse, twice = [], []
    for name, of in samples.items():
        ours, *others = of
        if any(map(math.isnan, of[ours]["utility"])):
            worse.append(f"{name} (a run of ours died)")
            continue
        equal = [one for one in others if _held(of[one]["latency_p95_s"], bounds[name])]
        lost = [one for one in equal if verdict("utility", of[ours]["utility"], of[one]["utility"]) == "worse"]
        if lost:
            worse.append(f"{name} ({', '.join(lost)})")
        for measure in ("error_mean", "late_windows"):
            rivals = equal if measure == "error_mean" else others
            if rivals and all(twice_as_good(of[ours][measure], of[one][measure]) for one in rivals):
                twice.append(f"{name} ({measure.replace('_', ' ')})")
                break
    half = len(samples) / 2
    rows = [
        ["on no workload worse in utility than a rival that holds the bound", ", ".join(worse) or "none is", not worse],
        [
            "twice as good as all in error or late windows on half of them",
            ", ".join(twice) or "none",
            len(twice) >= half,
        ],
    ]
    lines = ["| goal | found | verdict |", "|---|---|---|"]
    return "\n".join(lines + [f"| {a} | {b} | {'holds' if c else '**misses**'} |" for a, b, c in rows]) + "\n"


def _held(latencies_s: Sequence[float], bound_s: float) -> bool:
    """Whether the median is within the bound; a run that died holds nothing."""
    return statistics.median(math.inf if math.isnan(each) else each for each in latencies_s) <= bound_s


def _section(name: str, config: Mapping[str, Any], of: Samples) -> str:
    ours = next(iter(of))
    pairs = len(next(iter(of[ours].values())))
    lines = [
        f"## {name}",
        f"{config['what'].capitalize()}; capacity {config['capacity_rows_per_s']:,} rows/s, at most "
        f"{config['peak_rows_per_s']:,}; bound {config['bound_s']:g} s, {config['seconds']:g} s a run, {pairs} runs "
        f"of each; {config['machine']}, load average {statistics.median(of[ours]['load_average']):.1f}.",
        "",
        f"| | {' | '.join(_COLUMNS.values())} | Jettison is |",
        "|---" * (len(_COLUMNS) + 2) + "|",
    ]
    for entrant, figures in of.items():
        cells = [_cell(measure, figures[measure]) for measure in _COLUMNS]
        said = [(one, verdict(one, of[ours][one], figures[one])) for one in _JUDGED] if entrant != ours else []
        told = ", ".join(f"{word} ({measure.replace('_', ' ')})" for measure, word in said if word != "cannot tell")
        lines.append(f"| {entrant} | {' | '.join(cells)} | {told or ('' if entrant == ours else 'cannot tell')} |")
    return "\n".join([*lines, ""])


def _cell(measure: str, values: Sequence[float]) -> str:
    if any(map(math.isnan, values)):
        return ""
    middle = statistics.median(values)
    share = not measure.endswith("_s")
    text = "never" if math.isinf(middle) else f"{middle:.1%}" if share else f"{middle:.2f}"
    if measure not in _JUDGED or len(values) < 2 or not all(map(math.isfinite, values)):
        return text
    spread = intervals.mean(values)
    return f"{text} ({max(spread.lower, 0.0):.1%} to {spread.upper:.1%})"


def _samples(rows: Iterable[Mapping[str, Any]]) -> Samples:
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        config, measure = row["config"], row["config"]["measure"]
        # JSON has no infinity: a recovery that never came is null.
        unknown = math.inf if measure == "recovery_s" else math.nan
        values = [unknown if value is None else float(value) for value in config["samples"]]
        found.setdefault(config["entrant"], {})[measure] = values
    return found


def stored(folder: Path) -> list[Mapping[str, Any]]:
    """All results in the JSON files of a folder, in the order of their names."""
    return [row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text())]


if __name__ == "__main__":
    print(page(stored(Path(sys.argv[1]))), end="")
