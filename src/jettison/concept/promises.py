"""Which promise gives way when latency, rows and accuracy cannot all be kept.

1. **Latency and the row budget hold**: the smaller of the two says how many rows may be processed.
2. **Every group appears with its exact count**, whatever was dropped, where dropped rows are counted.
3. **Every group has a value** while there are `min_rows` for each; beyond that, groups without kept rows are flagged, or
   missing where dropped rows are not counted.
4. **Accuracy** is met if rules 1 to 3 leave enough rows. If they leave more, the surplus is dropped; if they leave
   fewer, the plan's cause names the error to be expected instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.concept.concepts import Accuracy

LEAST_LEFT = 1.0 / 60.0
"""Share of a pane that is taken to be still to come when it is over: late rows come, as many as in a usual batch."""
_OVERDRAFT = 0.1


@dataclass(frozen=True, slots=True)
class Settlement:
    """What the promises come to for the rows still to come of one window.

    Parameters
    ----------
    allowed
        Rows that may be kept.
    enough_rows
        Rows of one group beyond which none are needed; `None` without an accuracy target.
    binding
        Which promise set `allowed`: "latency" or "rows".
    """

    allowed: float
    enough_rows: float | None
    binding: str


def settle(
    *,
    latency_share: float,
    rows_left: float,
    row_budget_left: float | None = None,
    accuracy: Accuracy | None = None,
    variation: float = 1.0,
) -> Settlement:
    """Apply the rules above.

    Parameters
    ----------
    latency_share
        Share of the rows seen that the latency bound lets be processed.
    rows_left
        Rows still to come.
    row_budget_left
        What is left of the window's row budget.
    accuracy, variation
        The target, and the coefficient of variation of values within a group.

    Examples
    --------
    >>> settle(latency_share=0.5, rows_left=1000, row_budget_left=200)
    Settlement(allowed=200.0, enough_rows=None, binding='rows')
    """
    by_latency = max(latency_share, 0.0) * rows_left
    enough = None if accuracy is None else accuracy.rows(variation)
    if row_budget_left is not None and row_budget_left < by_latency:
        return Settlement(max(float(row_budget_left), 0.0), enough, "rows")
    return Settlement(by_latency, enough, "latency")


def budget_left(rows: float, kept: float, left: float) -> float:
    """What is left of a budget of rows; never nothing, because a row without a chance to be kept would bias the answer.

    A budget that was spent early goes on at a tenth of its pace over the share of time that is left.

    >>> budget_left(1000, 400, 0.5), budget_left(1000, 1200, 0.5)
    (600.0, 50.0)
    """
    return float(max(rows - kept, _OVERDRAFT * rows * left))


def expected_error(rows: float, accuracy: Accuracy, variation: float) -> float:
    """Relative error of a large group's mean to be expected from so many kept rows, at the target's confidence.

    >>> round(expected_error(1537, Accuracy(0.05), variation=1.0), 3)
    0.05
    """
    return float(accuracy.error * np.sqrt(accuracy.rows(variation) / rows)) if rows > 0 else float("inf")
