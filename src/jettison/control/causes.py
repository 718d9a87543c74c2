"""Why a budget is what it is, in words."""

from __future__ import annotations

import math

from jettison.control.arrivals import Arrivals
from jettison.control.outlook import REACHABLE, Ahead, Outlook

_TELLING = 3  # batches that must share an offset before it is spoken of


def why_keep_all(outlook: Outlook, ahead: Ahead, *, young: bool) -> str:
    """The figures, and why everything is kept where they do not say it."""
    capacity = outlook.capacity_rows_per_s
    cause = f"{outlook.rate:,.0f} rows/s arrive, about {capacity:,.0f} rows/s can be processed: keep all"
    if outlook.rate > capacity:
        if young:
            cause += ", because the process is young and gets faster: rows wait, but are not dropped"
        elif not outlook.dropping_helps(ahead):
            rows = min(ahead.rows, outlook.cap)
            least_s = outlook.costs.predict(rows, outlook.least_share * rows)
            cause += (
                f", because dropping would not help: a batch takes {least_s:.1f} s even if it keeps next to nothing"
            )
        elif not outlook.must_shed(ahead):
            cause += ", because the next batch is in time all the same"
        else:
            cause += ", because it is not certain yet that rows must be dropped"
    return cause + _impossible(outlook)


def why_shed(outlook: Outlook, ahead: Ahead, keep: float) -> str:
    """The figures behind a share, and whether it will do."""
    bound_s, least = outlook.settings.latency_bound_s, outlook.settings.least_share
    impossible = _impossible(outlook)
    cause = f"{outlook.rate:,.0f} rows/s arrive, {outlook.capacity_rows_per_s:,.0f} rows/s can be processed"
    cause += f" within {bound_s:.1f} s: keep {keep:.2f}"
    if ahead.late > 0:
        cause += "; rows of a backlog that are late already are thinned harder"
    if not impossible and keep <= least and outlook.sustainable < keep:
        cause += "; the bound may not be held: the least share allowed is too much"
    return cause + impossible


def _impossible(outlook: Outlook) -> str:
    """That the bound cannot be held whatever is dropped, and which one could; nothing where it can."""
    least_s, settings = outlook.least_latency_s, outlook.settings
    if outlook.falls_behind and math.isfinite(outlook.cap):
        return f"; batches of {outlook.cap:,.0f} rows cannot keep up whatever is dropped: raise the source's cap"
    if not settings.latency_bound_s < least_s < math.inf:
        return ""
    could_s = REACHABLE * least_s / settings.headroom
    even = f"even keeping {outlook.least_share:.2f} takes {least_s:.1f} s"
    return f"; the bound cannot be held: {even}, a bound of {could_s:.1f} s could"


def about_the_clock(arrivals: Arrivals, bound_s: float) -> str:
    """What is odd about the arrival column, if anything."""
    if arrivals.incredible:
        return "the arrival column cannot be one of arrivals and is ignored"
    offset_s = arrivals.offset_s
    recent_s = arrivals.ages_s[-_TELLING:]
    # Few batches, or ages that fall as a backlog is worked off, cannot tell a clock from stored rows.
    told = len(recent_s) == _TELLING and max(recent_s) - min(recent_s) <= bound_s / 2
    if abs(offset_s) <= bound_s / 2 or not told:
        return ""
    side = "behind" if offset_s > 0 else "ahead of"
    return f"the arrival column is {abs(offset_s):,.1f} s {side} the clock, which is taken out"
