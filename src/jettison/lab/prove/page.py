"""docs/rivals.md, made of stored results: `python -m jettison.lab.prove.page docs/rivals > docs/rivals.md`.

No figure is typed in: each follows from the samples in the JSON files of `jettison bench prove --json`.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jettison.lab import intervals
from jettison.lab.prove.goals import CANNOT_TELL, FAILS, LEVEL, MARGINS, Samples, goals, word
from jettison.lab.prove.judge import MEASURES
from jettison.lab.prove.record import Record, records
from jettison.lab.prove.workloads import every_name

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
    "feed_late_s": "feed late [s]",
    "batches_a_window": "batches a window",
}
_JUDGED = tuple(MARGINS)
_HEAD = """# Jettison beside its rivals

<!-- Made by `python -m jettison.lab.prove.page docs/rivals > docs/rivals.md`; do not edit. -->

The same rows, bound and machine for all: `jettison bench prove --workload W --repeat 5 --json docs/rivals/W.json`.
A process of its own lands rows on schedule and waits for nobody. Capacity is what plain Spark processes, measured until
two runs agree within 10 %; loads are multiples of it. Rivals that must be given a rate get 0.85 of what they process
themselves, and are told the load; the cap on a batch is that of the best throughput, the median of three runs. Jettison is
told nothing; beside it runs one that is told what it processes. All run in turn, the order reversed every other time.

Figures are medians of the runs; of errors, late windows and utility means with their 95 % interval. *Late*: answered
later than two bounds after the window was due (one batch closes it, the next brings the answer), or never. *Error*:
mean relative error of the answers that came, late ones too; *utility*: 1 less the error, and 0 where the answer is late
or missing, over all answers. Beside each rival stands what the pairs say of Jettison: better, worse, or cannot tell.
Samplers by key and the PID run on Jettison's own guard, without its controller and without bounds.

A goal *holds* or *fails* only where five pairs or more are certain of it: no rival is better by more than the margin, by
all of its interval; or one is, and not by chance (Holm's correction over all comparisons). For *twice as good* each workload
stands by itself, at a half of the chance for either measure. A workload on which Jettison does not hold the bound itself, or
dies, is lost; a rival that died, or did not run, leaves the goal open. Where rows can only pile up a rival runs twice, by
design. It breaks the bound, so that no comparison of the first goal is with it; but late windows stand beside all, so that
there the second goal can be met by the error alone.
"""


def page(results: Iterable[Mapping[str, Any]]) -> str:
    """The page of these results."""
    measured = records(results)
    if not measured:
        return f"{_HEAD}\n**Nothing has been measured yet on a machine of its own.**\n"
    samples = {name: _samples(record) for name, record in measured.items()}
    sections = [_section(name, record.config, samples[name]) for name, record in measured.items()]
    bounds = {name: float(record.config["bound_s"]) for name, record in measured.items()}
    rivals = {name: record.config["rivals"] for name, record in measured.items()}
    found = goals(samples, bounds, every_name(), rivals)
    lines = ["| goal | found | verdict |", "|---|---|---|"]
    lines += [f"| {one.goal} | {one.found} | {_shown(one.verdict)} |" for one in found]
    return "\n".join([_HEAD, *lines, "", _by_chance(samples), "", *_choosers(measured, samples), *sections])


def _shown(verdict: str) -> str:
    return f"**{verdict}**" if verdict == FAILS else verdict


def _by_chance(samples: Mapping[str, Samples]) -> str:
    """How many words in the tables would be wrong if nobody differed."""
    count = sum(len(_JUDGED) * (len(of) - 1) for of in samples.values())
    wrong = LEVEL * count
    return (
        f"The tables below make {count} comparisons, each by itself at 95 %: were there no difference at all, about "
        f"{wrong:.0f} of them would say *better* or *worse* by chance."
    )


def _choosers(measured: Mapping[str, Record], samples: Mapping[str, Samples]) -> Iterator[str]:
    """All policies on the same stream, where several ran; and why the others did not."""
    for name, record in measured.items():
        ours = [entrant for entrant in record.runs if entrant.startswith("jettison (") and "," not in entrant]
        if len(ours) > 1:
            left_out = [f"`{policy}` {why}" for policy, why in record.config.get("left_out", {}).items()]
            yield f"## All policies on one stream: {name}"
            yield from _table(samples[name], ours)
            yield ""
            yield from ([f"Not among them: {'; '.join(left_out)}.", ""] if left_out else [])


def _section(name: str, config: Mapping[str, Any], of: Samples) -> str:
    ours = next(iter(of))
    pairs = len(next(iter(of[ours].values())))
    agreed = "" if config["capacity_agrees"] else " (no two runs agreed)"
    loose = (
        f"; no two runs agreed on what these process: {', '.join(config['unsettled'])}" if config["unsettled"] else ""
    )
    rounds = config["rounds"]
    fixed = "as many as the time allowed" if rounds is None else f"{rounds} fixed beforehand"
    lines = [
        f"## {name}",
        f"{config['what'].capitalize()}; capacity {config['capacity_rows_per_s']:,} rows/s{agreed}, "
        f"at most {config['peak_rows_per_s']:,}; bound {config['bound_s']:g} s, {config['seconds']:g} s a run, {pairs} runs "
        f"of each unless it says otherwise, {fixed}; windows of {config['window_s']:g} s; {config['machine']}, load average "
        f"{statistics.median(of[ours]['load_average']):.1f}{loose}.",
        "",
        *_table(of, list(of)),
    ]
    return "\n".join([*lines, ""])


def _table(of: Samples, entrants: Sequence[str]) -> Iterator[str]:
    ours, runs = entrants[0], len(of[next(iter(of))]["utility"])
    yield f"| | {' | '.join(_COLUMNS.values())} | {ours} is |"
    yield "|---" * (len(_COLUMNS) + 2) + "|"
    for entrant in entrants:
        figures = of[entrant]
        cells = [_cell(measure, figures[measure]) for measure in _COLUMNS]
        said = [(one, word(one, of[ours][one], figures[one])) for one in _JUDGED] if entrant != ours else []
        told = ", ".join(f"{what} ({measure.replace('_', ' ')})" for measure, what in said if what != CANNOT_TELL)
        count = len(figures["utility"])
        name = entrant if count == runs else f"{entrant}, n={count}"
        yield f"| {name} | {' | '.join(cells)} | {told or ('' if entrant == ours else CANNOT_TELL)} |"


def _cell(measure: str, values: Sequence[float]) -> str:
    if any(map(math.isnan, values)):
        return ""
    middle = (statistics.fmean if measure in _JUDGED else statistics.median)(values)
    share = not measure.endswith("_s") and measure != "batches_a_window"
    text = "never" if math.isinf(middle) else f"{middle:.1%}" if share else f"{middle:.2f}"
    if measure not in _JUDGED or len(values) < 2 or not all(map(math.isfinite, values)):
        return text
    spread = intervals.mean(values)
    return f"{text} ({max(spread.lower, 0.0):.1%} to {spread.upper:.1%})"


def _samples(record: Record) -> Samples:
    return {
        entrant: {measure: [float(getattr(run, measure)) for run in runs] for measure in MEASURES}
        for entrant, runs in record.runs.items()
    }


def stored(folder: Path) -> list[Mapping[str, Any]]:
    """All results in the JSON files of a folder, in the order of their names."""
    return [row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text())]


if __name__ == "__main__":
    print(page(stored(Path(sys.argv[1]))), end="")
