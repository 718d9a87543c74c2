"""Advice: what the ledger and the saved controller say of the next hour, in sentences.

Which latency can be held, with and without dropping, what that would cost in rows and in accuracy, and what to set at the
source. Everything rests on the load that was measured: another load needs another look.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jettison.control.controller import Controller, ControlSettings
from jettison.control.load_model import Costs, LoadModel
from jettison.control.outlook import Outlook
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.documents import parse
from jettison.core.storage import Folder
from jettison.runtime.chooser import Auto, Facts, bounds_on_record, chosen, few_rows
from jettison.runtime.ledger import Ledger
from jettison.runtime.restart import STATE_FILE

_BUSIEST = 0.9  # of the time, which is less busy than what is called the busiest tenth
_LATELY_S = 3600.0
_FEWEST, _WIDTH = 5, 1.96  # batches to say anything from; of a 95 % bound, in standard errors
_GROUPS = (100, 1_000, 10_000)
_BY_GROUPS = (
    "",
    "UniformDrop",
    "ConceptDrop",
)  # between these the record decides; others are chosen for what people know


@dataclass(frozen=True, slots=True)
class Load:
    """What a query had to do, and what that costs.

    Parameters
    ----------
    costs
        Of a batch, as learned last.
    usual, busiest
        Rows a second: the mean, and what the busiest tenth of the time begins with.
    bound_s
        The latency bound in force.
    trigger_s
        Interval of the query's trigger; 0 where a batch starts as soon as the one before ends.
    doubt
        By what part costs may be wrong where all rows were kept: then few long batches tell what rows cost, and nobody knows
        what of it is spent on seeing a row and what on keeping it. `None` once rows were dropped.
    noise
        Relative scatter of batches' lengths.
    """

    costs: Costs
    usual: float
    busiest: float
    bound_s: float
    trigger_s: float = 0.0
    doubt: float | None = None
    noise: float = 0.0

    @property
    def shares(self) -> tuple[float, float]:
        """Between what and what the share lies that can be kept when it is busiest; all where dropping is not needed."""
        return self._share(self._outlook(self._scaled(1.0 + (self.doubt or 0.0)))), self._share(self._hopeful)

    @property
    def bound_to_keep_all_s(self) -> float:
        """The tightest bound under which no row need go when it is busiest; infinite where there is none."""
        outlook = self._outlook(self.costs)
        return outlook.settles_s / outlook.usable

    @property
    def least_bound_s(self) -> float:
        """The tightest bound that can then be held whatever is dropped; infinite where there is none."""
        return self._hopeful.least_latency_s / self._hopeful.settings.headroom

    @property
    def _hopeful(self) -> Outlook:
        if self.doubt is None:
            return self._outlook(self.costs)
        costs = self._scaled(1.0 / (1.0 + self.doubt))
        return self._outlook(Costs(costs.fixed_s, 0.0, costs.per_seen_row_s + costs.per_kept_row_s))

    def _scaled(self, factor: float) -> Costs:
        costs = self.costs
        return Costs(factor * costs.fixed_s, factor * costs.per_seen_row_s, factor * costs.per_kept_row_s)

    def _outlook(self, costs: Costs) -> Outlook:
        settings = ControlSettings(latency_bound_s=self.bound_s, trigger_interval_s=self.trigger_s)
        return Outlook(settings, costs, self.busiest, noise=self.noise, least_share=settings.least_share)

    @staticmethod
    def _share(outlook: Outlook) -> float:
        return 1.0 if outlook.settles_s <= outlook.enough_s else min(max(outlook.sustainable, 0.0), 1.0)


def error_of_counts(share: float, rows: float) -> float:
    """Half the width of a 95 % bound on a count, relative to it, of so many rows of which a share is kept.

    >>> round(error_of_counts(0.5, 1000), 3)
    0.062
    """
    return _WIDTH * math.sqrt((1.0 / share - 1.0) / rows)


def advice(home: Folder) -> list[str]:
    """Sentences on the query beside whose checkpoint `home` lies."""
    ledger = Ledger(home / "ledger")
    all_batches = lately(ledger)
    batches = [batch for batch in all_batches if any(one["seen"] for one in batch["points"].values())]
    found = bounds_on_record(all_batches)
    spoken, start = ledger.last("start", "order"), ledger.last("start")
    bound_s = None if spoken is None else spoken.get("latency_bound_s")
    model = _model(home, bound_s)
    if bound_s is None or model is None or len(batches) < _FEWEST:
        few = f"{len(batches)} batches with rows are on record"
        return [f"Nothing can be said yet: {few}, and what a batch costs is {'not ' if model is None else ''}known."]
    usual, busiest = _rates(batches)
    start = start or {}
    dry = bool(start.get("dry_run"))
    has_shed = not dry and any(_rows(batch, "dropped") for batch in batches)
    doubt = None if has_shed else _WIDTH * model.noise
    load = Load(model.costs, usual, busiest, bound_s, start.get("trigger_s") or 0.0, doubt, model.noise)
    told = [_seen(load, batches), *_dropped(batches, dry=dry), *_bounds(load), *_price(load), *_errors(found)]
    return [*told, *_policy(load, found, str(start.get("policy") or "")), *_source(load)]


def lately(ledger: Ledger) -> list[dict[str, Any]]:
    """The batches of the last hour on record."""
    batches: deque[dict[str, Any]] = deque()
    for batch in ledger.records("batch"):
        batches.append(batch)
        while batches[0]["at_s"] < batch["at_s"] - _LATELY_S:
            batches.popleft()
    return list(batches)


def _model(home: Folder, bound_s: float | None) -> LoadModel | None:
    """What the controller had learned when it was saved last."""
    try:
        document = parse(home.read(STATE_FILE) or b"null")
        document.pop("policy", None)
        model = Controller.from_dict(ControlSettings(latency_bound_s=bound_s or 1.0), document).model
        return model if model.ready else None
    except (ValueError, TypeError, AttributeError):
        return None


def _rates(batches: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Rows a second that batches took: the mean, and the 90 % quantile by time."""
    spans = [(after["started_s"] - before["started_s"], _rows(after, "seen")) for before, after in pairwise(batches)]
    spans = [(length_s, rows) for length_s, rows in spans if length_s > 0]
    total_s = sum(length_s for length_s, _ in spans)
    passed_s, busiest = 0.0, 0.0
    for length_s, rows in sorted(spans, key=lambda span: span[1] / span[0]):
        passed_s, busiest = passed_s + length_s, rows / length_s
        if passed_s >= _BUSIEST * total_s:
            break
    return sum(rows for _, rows in spans) / max(total_s, 1e-9), busiest


def _rows(batch: dict[str, Any], what: str) -> int:
    points = batch["points"]
    return sum(int(points[name][what]) for name in batch.get("entrance") or points)


def _seen(load: Load, batches: Sequence[dict[str, Any]]) -> str:
    minutes = (batches[-1]["at_s"] - batches[0]["at_s"]) / 60
    costs = load.costs
    return (
        f"In the last {minutes:.0f} minutes on record ({len(batches)} batches) {load.usual:,.0f} rows/s came on average, "
        f"{load.busiest:,.0f} rows/s and more in the busiest tenth of the time; a batch takes {costs.fixed_s:.2g} s, "
        f"{1e6 * costs.per_seen_row_s:.2g} us for each row seen and {1e6 * costs.per_kept_row_s:.2g} us for each row kept."
    )


def _dropped(batches: Sequence[dict[str, Any]], *, dry: bool) -> Iterator[str]:
    for name in batches[-1]["points"]:
        found = [batch["points"][name] for batch in batches if name in batch["points"]]
        seen, dropped = (sum(one[what] for one in found) for what in ("seen", "dropped"))
        were = "would have been" if dry else "were"
        yield f"At {name!r} {dropped:,} of {seen:,} rows ({dropped / max(seen, 1):.1%}) {were} dropped."


def _bounds(load: Load) -> Iterator[str]:
    whole_s, least_s = load.bound_to_keep_all_s, load.least_bound_s
    if math.isfinite(whole_s):
        yield f"A bound of {whole_s:.2g} s or more holds in the busiest tenth without dropping a row."
    else:
        work = load.busiest * (load.costs.per_seen_row_s + load.costs.per_kept_row_s)
        yield f"No bound holds in the busiest tenth without dropping: {work:.2g} s of work come a second."
    if math.isfinite(least_s):
        yield f"Below {least_s:.2g} s no bound can be held then, whatever is dropped."
    else:
        yield "No bound can be held then, whatever is dropped: merely to see the rows takes longer than they take to come."


def _price(load: Load) -> Iterator[str]:
    low, high = load.shares
    under = f"Under the bound of {load.bound_s:g} s"
    if low >= 1.0:
        yield f"{under} nothing need be dropped at this load."
        return
    if high <= 0.0:
        yield f"{under} nothing helps at this load: raise it, or give the query more cores."
        return
    if load.doubt is None:
        yield f"{under} about {low:.1%} of the rows are kept then."
    else:
        unknown = "nothing was dropped so far, so what a dropped row saves is not known"
        yield f"{under} between {low:.1%} and {high:.1%} of the rows are kept then: {unknown}."
    for share in sorted({low, high} - {0.0, 1.0}):
        errors = ", ".join(f"{error_of_counts(share, rows):.1%} over {rows:,} rows" for rows in _GROUPS)
        mean = "a mean by as much times the coefficient of variation of its values"
        yield f"At {share:.1%} kept at random a count is off by up to {errors} (95 % bounds), {mean}."


def _errors(found: Mapping[str, Sequence[AnswerBounds]]) -> Iterator[str]:
    """Of the query's own answers, where they are watched."""
    for name, said in found.items():
        for foreseen in (True, False):
            of_kind = [one for one in said if one.foreseen == foreseen and one.bounded]
            if not of_kind:
                continue
            widths = _off([(one.median, one.p95, one.bounded) for one in of_kind])
            if not widths:
                continue
            errors = _off([(one.median_error, one.p95_error, one.bounded) for one in of_kind])
            truly = f"; in truth {errors}" if errors else ""
            answers, were = sum(one.bounded for one in of_kind), "would have been" if foreseen else "were"
            yield f"By their bounds {answers:,} answers {name!r} {were} off {widths}{truly}."


def _off(batches: Sequence[tuple[float | None, float | None, int]]) -> str:
    """In words, how far answers are off at most, of the medians and 95 % quantiles of batches and how many each counts."""
    known = [(median, p95, answers) for median, p95, answers in batches if median is not None and p95 is not None]
    return (
        f"by up to {_most(known, 50):.1%} in half of them, and by up to {_most(known, 95):.1%} in 95%" if known else ""
    )


def _most(known: Sequence[tuple[float, float, int]], percent: int) -> float:
    """The least number that certainly so many percent of all answers do not exceed: quantiles have no mean."""
    answers = sum(of_batch for _, _, of_batch in known)

    def certainly(most: float) -> int:
        return sum((95 if p95 <= most else 50 if median <= most else 0) * of_batch for median, p95, of_batch in known)

    return next(
        most for most in sorted({x for pair in known for x in pair[:2]}) if certainly(most) >= percent * answers
    )


def _policy(load: Load, found: Mapping[str, Sequence[AnswerBounds]], policy: str) -> Iterator[str]:
    """Which policy, where the record can tell: by the rules of the README, for somebody who can name groups."""
    if policy not in _BY_GROUPS:
        yield f"The policy may stay, {policy}: the record does not tell what speaks for it."
        return
    few = few_rows(found)
    if few is None:
        yield "Which policy is not on record: `shedder.watch(rows, answers)` has it on record what bounds answers get."
        return
    groups = Auto(group="...", time="...", window="...")
    name, why = chosen(Facts(groups, policy, few))
    if name == policy:
        yield f"The policy may stay, {policy}: {why}."
    else:
        yield f"Which policy: {name} in place of {policy or 'the present one'}, since {why}."


def _source(load: Load) -> Iterator[str]:
    capacity = load.costs.capacity_rows_per_s(load.bound_s / 2)
    cap = math.ceil(load.busiest * load.bound_s / 2)
    yield (
        f"At the source: at most {cap:,} rows a trigger (Kafka: maxOffsetsPerTrigger) and "
        f"Shedder(peak_rows_per_s={load.busiest:.0f}, capacity_rows_per_s={capacity:.0f})."
    )
