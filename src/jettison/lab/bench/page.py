"""The tables of docs/benchmarks.md, made of stored results.

`python -m jettison.lab.bench.page docs/benchmarks.md docs/results` writes, below each line `<!-- results of NAME -->`, the
table of all that `jettison bench NAME --json docs/results/NAME-ANYTHING.json` found. No figure in them is typed in.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jettison.lab.bench.faults import merged
from jettison.lab.bench.result import as_row

Row = Mapping[str, Any]
_BLOCK = re.compile(r"(<!-- results of ([a-z-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
_NOT_MEASURED = "Not measured yet.\n"


def page(text: str, folder: Path) -> str:
    """The same page with its tables made again."""
    return _BLOCK.sub(lambda found: found[1] + table(shown(found[2], stored(folder, found[2]))) + found[3], text)


def shown(benchmark: str, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that stand on the page: of faults those over all seeds, whatever commands ran them."""
    if benchmark != "faults" or not rows:
        return rows
    about = {"machine": "; ".join(sorted({row["config"]["machine"] for row in rows}))}
    return [as_row(replace(one, config={**one.config, **about})) for one in merged(rows)]


def stored(folder: Path, benchmark: str) -> list[Row]:
    """All results of one benchmark, in the order of the files' names."""
    rows = [row for path in sorted(folder.glob(f"{benchmark}-*.json")) for row in json.loads(path.read_text())]
    return [row for row in rows if row["config"]["benchmark"] == benchmark]


def table(rows: Iterable[Row]) -> str:
    """One line for each figure, with all runs of it; where it was measured stands below."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    if not by_name:
        return _NOT_MEASURED
    lines = ["| | beside plain, or as it is | measured | bar | verdict |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_cells(name, runs))} |" for name, runs in by_name.items()]
    machines = sorted({str(row["config"]["machine"]) for of in by_name.values() for row in of})
    return "\n".join([*lines, "", f"Measured on {'; '.join(machines)}.", ""])


def _cells(name: str, runs: Sequence[Row]) -> list[str]:
    last = runs[-1]
    beside = [_number(run["baseline"]) for run in runs if run["baseline"] is not None]
    as_it_is = [_amount(run) for run in runs] if last["ratio"] is not None else []
    against = f"{'; '.join(as_it_is)} to {'; '.join(beside)}" if as_it_is and beside else "; ".join(as_it_is or beside)
    return [name, against, "; ".join(map(_figure, runs)), last["bar"], _verdict(runs)]


def _figure(run: Row) -> str:
    """The figure that is judged, with its interval and the number of its pairs where it has them."""
    text = _number(run["ratio"]) if run["ratio"] is not None else _amount(run)
    bounds = run["interval"]
    if not bounds:
        return text
    pairs = f", {run['config']['pairs']} pairs" if "pairs" in run["config"] else ""
    return f"{text} ({_number(bounds[0])} to {_number(bounds[1])}{pairs})"


def _verdict(runs: Sequence[Row]) -> str:
    """That of all runs if they agree, else how many of them hold."""
    said = [run["verdict"] for run in runs]
    words = said[0] if len(set(said)) == 1 else f"holds in {said.count('holds')} of {len(said)}"
    return words if words in ("holds", "cannot tell", "") else f"**{words}**"


def _amount(run: Row) -> str:
    """The value in its unit."""
    return "unknown" if run["value"] is None else f"{_number(run['value'])} {run['unit']}".strip()


def _number(value: float | None) -> str:
    """Three digits, which is more than two cores give.

    >>> _number(1234567.0), _number(0.12345), _number(None)
    ('1,230,000', '0.123', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"{float(f'{value:.3g}'):,.10g}"


if __name__ == "__main__":
    document, results = map(Path, sys.argv[1:])
    document.write_text(page(document.read_text(), results))
