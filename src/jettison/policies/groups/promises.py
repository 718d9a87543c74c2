"""Which promise gives way when latency, rows and accuracy cannot all be kept.

1. **Latency and the row budget hold**: the smaller of the two says how many rows may be processed.
2. **Every group appears with its exact count**, whatever was dropped, where dropped rows are counted.
3. **Every group has a value** while there are `min_rows` for each; beyond that, groups without kept rows are flagged, or
   missing where dropped rows are not counted.
4. **Accuracy** is met if rules 1 to 3 leave enough rows. If they leave more, the surplus is dropped; if they leave
   fewer, the plan's cause names the error to be expected instead.
"""

from __future__ import annotations

LEAST_LEFT = 1.0 / 60.0
"""Share of a pane that is taken to be still to come when it is over: late rows come, as many as in a usual batch."""
_OVERDRAFT = 0.1


def allowed_rows(latency_share: float, rows_left: float, row_budget_left: float | None = None) -> tuple[float, bool]:
    """Rows that may be kept of those still to come, and whether the row budget is what binds.

    Parameters
    ----------
    latency_share
        Share of the rows seen that the latency bound allows to process.
    rows_left
        Rows still to come.
    row_budget_left
        What is left of the window's row budget, where there is one.

    Examples
    --------
    >>> allowed_rows(0.5, 1000), allowed_rows(0.5, 1000, row_budget_left=200)
    ((500.0, False), (200.0, True))
    """
    by_latency = max(latency_share, 0.0) * rows_left
    if row_budget_left is not None and row_budget_left < by_latency:
        return max(float(row_budget_left), 0.0), True
    return by_latency, False


def budget_left(rows: float, kept: float, left: float) -> float:
    """What is left of a budget of rows; never nothing, because a row without a chance to be kept would bias the answer.

    A budget that was spent early goes on at a tenth of its pace over the share of time that is left.

    >>> budget_left(1000, 400, 0.5), budget_left(1000, 1200, 0.5)
    (600.0, 50.0)
    """
    return float(max(rows - kept, _OVERDRAFT * rows * left))
