"""What has been measured of one workload, run by run, and the results that follow from it: stored, and read again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jettison.errors import refuse
from jettison.lab import intervals
from jettison.lab.bench.result import Result
from jettison.lab.prove.judge import MEASURES, Figures

_OF_ENTRANT = ("entrant", "measure", "samples", "mean", "pairs", "setting", "benchmark")
_NEVER = "never"


@dataclass
class Record:
    """A workload's runs.

    Parameters
    ----------
    config
        Under what they ran.
    settings, runs
        By entrant, in the order in which they are shown: Jettison comes first. The nth runs of all stood side by side.
    """

    config: Mapping[str, Any]
    settings: dict[str, float | None] = field(default_factory=dict)
    runs: dict[str, list[Figures]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return len(next(iter(self.runs.values()))) if self.runs else 0

    def results(self) -> list[Result]:
        """Each figure of each entrant with its interval; the ratio is that of the first entrant over it, pair by pair.

        `samples` are the runs' own figures, from which everything else follows.
        """
        return [self._result(entrant, measure) for entrant in self.runs for measure in MEASURES]

    def _result(self, entrant: str, measure: str) -> Result:
        ours, runs = next(iter(self.runs.values())), self.runs[entrant]
        own, values = ([float(getattr(run, measure)) for run in of] for of in (ours[: len(runs)], runs))
        known = [value for value in values if math.isfinite(value)]
        pairs = [(a, b) for a, b in zip(own, values, strict=True) if a > 0.0 and b > 0.0 and math.isfinite(a + b)]
        ratio = intervals.mean_ratio(*zip(*pairs, strict=True)) if pairs and len(pairs) == len(values) else None
        about = {
            **self.config,
            "setting": self.settings[entrant],
            "entrant": entrant,
            "measure": measure,
            "samples": [_stored(value) for value in values],
            "mean": list(intervals.mean(known)) if known else None,
            "pairs": len(values),
        }
        return Result(
            f"{self.config['workload']}, {entrant}: {measure}",
            _median(values),
            "s" if MEASURES[measure] else "",
            _median(own),
            None if ratio is None else ratio.value,
            config=about,
            interval=None if ratio is None else (ratio.lower, ratio.upper),
        )


def records(rows: Iterable[Mapping[str, Any]]) -> dict[str, Record]:
    """The records that stored results are of, by workload; those of one workload ran side by side, or are refused.

    >>> one = Record({"workload": "taxi"}, {"ours": None}, {"ours": [Figures(recovery_s=math.inf)]})
    >>> from dataclasses import asdict
    >>> again = records(map(asdict, one.results()))["taxi"]
    >>> again.runs["ours"][0].recovery_s, again.runs["ours"][0].utility, again.settings
    (inf, nan, {'ours': None})
    """
    found: dict[str, Record] = {}
    samples: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in rows:
        config = row["config"]
        if "entrant" in config:
            name, entrant = config["workload"], config["entrant"]
            about = {key: value for key, value in config.items() if key not in _OF_ENTRANT}
            record = found.setdefault(name, Record(about))
            if differ := [key for key in {**record.config, **about} if record.config.get(key) != about.get(key)]:
                hint = "keep the results of one measurement in the folder"
                refuse(
                    f"all results of a workload must have the same {differ[0]}, {record.config.get(differ[0])}",
                    str(about.get(differ[0])),
                    where=name,
                    hint=hint,
                )
            record.settings[entrant] = config["setting"]
            of = samples.setdefault((name, entrant), {})
            of[config["measure"]] = [_read(value) for value in config["samples"]]
    for (name, entrant), of in samples.items():
        count = max(map(len, of.values()))
        runs = [{measure: values[place] for measure, values in of.items()} for place in range(count)]
        found[name].runs[entrant] = [Figures(**run) for run in runs]
    return found


def _stored(value: float) -> float | str | None:
    """JSON has neither of the two."""
    return value if math.isfinite(value) else _NEVER if value > 0 else None


def _read(value: float | str | None) -> float:
    return math.nan if value is None else math.inf if value == _NEVER else float(value)


def _median(values: Sequence[float]) -> float:
    return math.nan if not values or any(map(math.isnan, values)) else statistics.median(values)
