"""The safety margin, learned: what rows really cost against what was estimated for them."""

from __future__ import annotations

from dataclasses import dataclass, field

DOUBT_ROWS = 3.0
"""Rows that had no error at all, added to the rows learned: the first row alone must not set the factor."""


@dataclass(slots=True)
class Residuals:
    """By what estimates must be multiplied so that they are right on average, for known and for unknown keys apart.

    An estimate that is too low for the rows of late (costs doubled, collisions, cheap rows kept and costly ones dropped)
    raises the factor, one that is too high lowers it. No setting stands in for the error: a sketch that is exact
    gets no margin, a narrow one the margin that it needs. Unknown keys have a factor of their own, because the mean of the
    rows executed says little about keys that are seen for the first time.

    Parameters
    ----------
    memory_rows
        Rows over which the factor is learned: older ones count less and less.

    Examples
    --------
    >>> residuals = Residuals()
    >>> for _ in range(500):
    ...     residuals.learn(estimate=2.0, cost=4.0, known=True)
    >>> round(residuals.factor(known=True), 2), residuals.factor(known=False)
    (1.94, 1.0)

    Notes
    -----
    In the paper the margin is `epsilon`, the sketch's width: a wide sketch then has no margin and a narrow one a large
    one, whatever the errors are.
    """

    memory_rows: float = 100.0
    _rows: list[float] = field(default_factory=lambda: [0.0, 0.0])
    _estimated: list[float] = field(default_factory=lambda: [0.0, 0.0])
    _real: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def learn(self, estimate: float, cost: float, *, known: bool, rows: int = 1) -> None:
        """Rows that were estimated, before any factor, at `estimate` together did cost `cost`."""
        if estimate <= 0.0 or rows <= 0:
            return
        remembered = (1.0 - 1.0 / self.memory_rows) ** rows
        self._rows[known] = self._rows[known] * remembered + rows
        self._estimated[known] = self._estimated[known] * remembered + estimate
        self._real[known] = self._real[known] * remembered + cost

    def factor(self, *, known: bool) -> float:
        """Real over estimated cost of late; 1 before anything is known."""
        if self._rows[known] == 0.0:
            return 1.0
        doubt = DOUBT_ROWS * self._real[known] / self._rows[known]
        return (self._real[known] + doubt) / (self._estimated[known] + doubt)
