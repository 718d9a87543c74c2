"""Why a budget is what it is, in words."""

from __future__ import annotations

import math

from jettison.arrivals import Arrivals
from jettison.outlook import Ahead, Outlook


def why_keep_all(outlook: Outlook) -> str:
    """The figures that allow to keep everything."""
    return (
        f"{outlook.rate:,.0f} rows/s arrive, about {outlook.capacity_rows_per_s:,.0f} rows/s can be processed: keep all"
    )


def why_shed(outlook: Outlook, ahead: Ahead, keep: float) -> str:
    """The figures behind a share, and whether it will do."""
    bound_s, least = outlook.settings.latency_bound_s, outlook.settings.min_keep_fraction
    cause = f"{outlook.rate:,.0f} rows/s arrive, {outlook.capacity_rows_per_s:,.0f} rows/s can be processed"
    cause += f" within {bound_s:.1f} s: keep {keep:.2f}"
    if ahead.late > 0:
        cause += f"; {ahead.late:,.0f} rows of a backlog are late already and are thinned harder"
    if bound_s < (least_s := outlook.least_latency_s) < math.inf:
        cause += f"; the bound cannot be held: even keeping {least:.2f} takes {least_s:.1f} s"
    elif keep <= least and outlook.sustainable < keep:
        cause += "; the bound may not be held: the least share allowed is too much"
    return cause


def about_the_clock(arrivals: Arrivals, bound_s: float) -> str:
    """What is odd about the arrival column, if anything."""
    if arrivals.incredible:
        return "the arrival column cannot be one of arrivals and is ignored"
    offset_s = arrivals.offset_s
    if abs(offset_s) <= bound_s / 2:
        return ""
    side = "behind" if offset_s > 0 else "ahead of"
    return f"the arrival column is {abs(offset_s):,.1f} s {side} the clock, which is taken out"
