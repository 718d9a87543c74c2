"""The claims, each judged from what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jettison.reproduce.claims import Claim, noted
from jettison.reproduce.concept.experiments import EQUAL_CAPS, SHARES, SHIPPED, SHIPPED_LARGE, Results
from jettison.reproduce.concept.harness import Run

_TWO_SIDED_95 = 1.96
TAXI, ZIPF, CLUSTER, FOUR, PACKETS = "taxi-like", "zipf", "cluster-like", "four classes", "packets"
ROUTES, RIDES = "routes", "taxi rides"
_MOVED = {
    "shipped-near-best": "the bar",
    "setting-gain-own": "the measure: the lower end of an interval, so that no seed decides",
    "shipped-gain": "the method, twice: strict, on taxi-like with room for 20,000 groups, then the default setting",
    "gain-": "room in the plan: 1,500 groups before, 10,000 now",
}


def claims_of(results: Results, config: dict[str, Any]) -> list[Claim]:
    """All claims that need no engine, in the paper's order."""
    made = [*_drift(results), *_setting(results), *_equal_rows(results), *_volume(results), *_beyond(results)]
    return noted([replace(claim, config=config | dict(claim.config)) for claim in made], _MOVED)


def _drift(results: Results) -> list[Claim]:
    change = [shift.top_change for shift in results.shifts[TAXI]]
    text = "consecutive windows' ten largest routes change by about 30 % (the generator's shape)"
    return [Claim("drift-taxi", text, "30 % on average", float(np.mean(change)), at_least=0.2, at_most=0.4)]


def _setting(results: Results) -> list[Claim]:
    claims = []
    for name, label, uniform_bar, paper in ((TAXI, "taxi", 0.8, "> 80 %"), (CLUSTER, "cluster", 0.4, "> 40 %")):
        at = results.settings[name, 0.98]
        concept, rows = at.paper, {"stream": name, "b": 0.98, "rows_processed": round(at.paper.processed_share, 4)}
        near = "close to or below 10 %"
        text = f"b = 98 %, {name}: mean error over groups at most 10 %"
        claims.append(Claim(f"setting-error-{label}", text, near, concept.error, at_most=0.10, config=rows))
        text = f"b = 98 %, {name}: 95th percentile at most 15 %"
        claims.append(Claim(f"setting-error95-{label}", text, near, concept.error_95, at_most=0.15, config=rows))
        text = f"at the rows that b = 98 % really processes, {name}: ConceptDrop misses no group"
        missing = at.shipped_same_rows.missing_share
        claims.append(
            Claim(f"same-rows-missing-{label}", text, "zero missing groups", missing, at_most=0.0, config=rows)
        )
        text = f"2 % of the rows, {name}: Uniform's mean error above {uniform_bar:.0%}"
        error = at.uniform.error
        claims.append(Claim(f"setting-uniform-{label}", text, paper, error, at_least=uniform_bar, config=rows))
        text = f"b = 98 %, {name}: no more than 2.5 % of the rows are processed"
        share, taken = concept.processed_share, "2 % (b is taken for the rows processed)"
        claims.append(Claim(f"setting-rows-{label}", text, taken, share, at_most=0.025, config=rows))
        text = f"at the rows that b = 98 % really processes, {name}: equal caps ten times as accurate as Uniform"
        own = (
            f"at the rows that b = 98 % really processes, {name}: the paper's own form ten times as accurate as Uniform"
        )
        own += " (lower end of a 95 % interval over windows)"
        low, order = _gain_at_least(at.uniform_same_rows, concept), "more than an order of magnitude"
        spread = rows | {
            "gain": round(_ratio(at.uniform_same_rows, concept), 4),
            "windows": len(concept.outcomes),
        }
        claims.append(Claim(f"setting-gain-own-{label}", own, order, low, at_least=10.0, config=spread))
        gain = _ratio(at.uniform_same_rows, at.equal_caps_same_rows)
        claims.append(Claim(f"setting-gain-{label}", text, order, gain, at_least=10.0, config=rows))
    text = "2 % of the rows, four classes with the trace's own shares: Uniform's mean error above 40 %"
    error = results.settings[FOUR, 0.98].uniform.error
    return [*claims, Claim("setting-uniform-four", text, "> 40 %", error, at_least=0.4, config={"stream": FOUR})]


def _equal_rows(results: Results) -> list[Claim]:
    at = results.equal_rows
    claims = _shipped(results)
    bars = {(ZIPF, 0.05): 2.0, (ZIPF, 0.10): 2.0, (ZIPF, 0.25): 10.0, (TAXI, 0.25): 10.0}
    for key, method in (("gain", EQUAL_CAPS), ("shipped-gain", SHIPPED)):
        for (name, share), bar in bars.items():
            ours, uniform = at[name, share, method], at[name, share, "Uniform"]
            text = f"{name}, {share:.0%} of the rows, {method}: error at least {bar:g} times lower than Uniform's"
            gain, rows = _ratio(uniform, ours), _rows(ours, uniform)
            claims.append(Claim(f"{key}-{name}-{share:.0%}", text, "", gain, at_least=bar, config=rows))
    for share in (0.05, 0.10, 0.25):
        ours = at[ZIPF, share, EQUAL_CAPS]
        text = f"{ZIPF}, 40 % drift, {share:.0%} of the rows: no group missing"
        claims.append(Claim(f"missing-{share:.0%}", text, "zero missing groups", ours.missing_share, at_most=0.0))
    last = at[ZIPF, 0.10, "last window's rates"]
    text = "the last window's rates lose at least a tenth of the groups under 40 % drift, 10 % of the rows"
    claims.append(Claim("missing-last-window", text, "destined to deteriorate", last.missing_share, at_least=0.1))
    for share in (0.05, 0.10, 0.25):  # at 5 % the floor of 10 rows a group takes nearly all, and the rules agree
        others = [at[ZIPF, share, f"concept, {rule}"].error for rule in ("proportional", "Neyman")]
        text = f"{ZIPF}, {share:.0%} of the rows: equal caps have the smallest error of the allocations (best other / equal)"
        ratio = min(others) / max(at[ZIPF, share, EQUAL_CAPS].error, 1e-9)
        claims.append(Claim(f"equal-caps-{share:.0%}", text, "", ratio, at_least=1.0))
    scalar = _ratio(at[PACKETS, 0.01, "Uniform"], at[PACKETS, 0.01, EQUAL_CAPS])
    text = "packets, a scalar mean, 1 % of the rows: nothing to be gained (Uniform's error / ours)"
    claims.append(Claim("scalar-equal", text, "comparable", scalar, at_least=0.75, at_most=1.33))
    return claims


def _shipped(results: Results) -> list[Claim]:
    """The policy as a user gets it: on generated streams, and on real ones where they are at hand."""
    at, claims = results.equal_rows, []
    for name in (TAXI, ZIPF, *(stream.name for stream in results.real if stream.name in (ROUTES, RIDES))):
        label = name.replace(" ", "-")
        worst = max(SHARES, key=lambda share: _ratio(at[name, share, SHIPPED], at[name, share, SHIPPED_LARGE]))
        text = (
            f"{name}: error of ConceptDrop over that with room for 20,000 groups a plan, worst of {len(SHARES)} shares"
        )
        over = _ratio(at[name, worst, SHIPPED], at[name, worst, SHIPPED_LARGE])
        claims.append(Claim(f"default-plan-{label}", text, "", over, at_most=1.1, config={"share": worst}))
        ours, uniform = at[name, 0.25, SHIPPED], at[name, 0.25, "Uniform"]
        uniform_missing = {"uniform_missing": round(uniform.missing_share, 4)}
        text, paper = f"{name}, 25 % of the rows, ConceptDrop: no group missing", "zero missing groups"
        missing = ours.missing_share
        claims.append(Claim(f"shipped-missing-{label}", text, paper, missing, at_most=0.0, config=uniform_missing))
        text = f"{name}, 25 % of the rows, ConceptDrop: counts of groups nearer than Uniform's (its error / ours)"
        nearer = uniform.count_error / max(ours.count_error, 1e-9)
        claims.append(Claim(f"shipped-counts-{label}", text, "", nearer, at_least=1.0))
        if name in (ROUTES, RIDES):
            text = f"{name}, 25 % of the rows, ConceptDrop: part of what reservoirs with hindsight gain over Uniform"
            part = (uniform.error - ours.error) / (uniform.error - at[name, 0.25, "reservoirs (OASRS)"].error)
            gain = {"gain": round(_ratio(uniform, ours), 4)}
            claims.append(Claim(f"shipped-near-best-{label}", text, "", part, at_least=0.7, config=gain))
    return claims


def _volume(results: Results) -> list[Claim]:
    claims = []
    for name in (TAXI, ZIPF, CLUSTER):
        ours = results.equal_rows[name, 0.02, EQUAL_CAPS]
        text = f"{name}: more accurate at 2 % of the rows than Uniform at 50 % (its error / ours)"
        paper = "much higher accuracy at 25 times less data"
        claims.append(Claim(f"volume-{name}", text, paper, _ratio(results.half[name], ours), at_least=1.0))
    nominal = _ratio(results.half[TAXI], results.settings[TAXI, 0.98].paper)
    text = "taxi-like: the paper's setting b = 98 % is more accurate than Uniform at 50 %, whatever it processes"
    return [*claims, Claim("volume-setting", text, "much higher accuracy", nominal, at_least=1.0)]


def _beyond(results: Results) -> list[Claim]:
    claims = []
    for share in sorted({outcome.share for outcome in results.joins}):
        by_way = {outcome.way: outcome for outcome in results.joins if outcome.share == share}
        best = min(outcome.error for way, outcome in by_way.items() if way != "hybrid")
        text = f"joins, {share:.0%} of the rows: error of the count, best single way / hybrid"
        claims.append(Claim(f"join-gain-{share:.0%}", text, "", best / by_way["hybrid"].error, at_least=1.2))
        text = f"joins, {share:.0%} of the rows: bounds of 95 % cover the count"
        claims.append(Claim(f"join-coverage-{share:.0%}", text, "", by_way["hybrid"].coverage, at_least=0.88))
    for name, outcomes in results.borrowing.items():
        text = (
            f"{name}: bounds of 95 % of borrowed estimates cover, over all groups with dropped rows at 5, 10 and 25 %"
        )
        shed = [o.shed_groups for o in outcomes]
        coverage = float(np.average([o.coverage for o in outcomes], weights=shed))
        claims.append(Claim(f"borrow-coverage-{name}", text, "", coverage, at_least=0.93))
        text = (
            f"{name}: borrowed estimates have the smaller error over all groups at 5 % of the rows (direct / borrowed)"
        )
        ratio = outcomes[0].direct_error / outcomes[0].error
        claims.append(Claim(f"borrow-error-{name}", text, "", ratio, at_least=1.0))
    return claims


def _ratio(worse: Run, better: Run) -> float:
    return worse.error / max(better.error, 1e-9)


def _gain_at_least(worse: Run, better: Run) -> float:
    """Lower end of a 95 % interval of the ratio of mean errors, both measured on the same windows.

    Where a gain lies near its bar, the ratio itself falls on either side of it as the seed will have it.
    """
    high, low = (np.array([outcome.error for outcome in run.outcomes]) for run in (worse, better))
    ratio = _ratio(worse, better)
    gaps = (high - ratio * low) / max(float(low.mean()), 1e-9)
    return ratio - _TWO_SIDED_95 * float(gaps.std(ddof=1)) / float(np.sqrt(len(gaps)))


def _rows(ours: Run, uniform: Run) -> dict[str, float]:
    return {"ours_processed": round(ours.processed_share, 4), "uniform_processed": round(uniform.processed_share, 4)}
