"""How wide the bounds of a query's answers were in one micro-batch."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from jettison.core.documents import Natural, Number


class AnswerBounds(Struct, frozen=True, kw_only=True):
    """The answers of one aggregate that came out of a batch.

    Parameters
    ----------
    answers
        All of them.
    bounded
        Those with bounds to be trusted; in a dry run those that would have had them.
    few_rows
        Those whose bounds rest on too few rows, or would.
    dependent
        Those whose bounds are too short, or would be, because rows behind them share decisions.
    unconfirmed
        Those of which nobody can tell how far they are off.
    median, p95
        Half the width of the bounds relative to the answer: of half of the bounded answers it is at most so much, and of
        95 %. `None` where there are none.
    foreseen
        Whether this is what would follow from the plans of a dry run, whose answers are exact.
    median_error, p95_error
        How far these answers would really be off, known in a dry run alone: half of the bounded ones at most so much, and
        95 % of them.
    """

    answers: Natural
    bounded: Natural
    few_rows: Natural
    median: Number | None
    p95: Number | None
    foreseen: bool = False
    median_error: Number | None = None
    p95_error: Number | None = None
    dependent: Natural = 0
    unconfirmed: Natural = 0

    def of_dependent_rows(self) -> AnswerBounds:
        """The same where rows behind all answers that rows would be missing from share decisions."""
        dependent = self.bounded + self.few_rows + self.dependent
        nothing: dict[str, Any] = dict.fromkeys(("median", "p95", "median_error", "p95_error"))
        return replace(self, dependent=dependent, bounded=0, few_rows=0, **nothing)

    def words(self, name: str) -> str:
        """How far off the answers of that name are, or would be.

        >>> AnswerBounds(answers=9, bounded=8, few_rows=1, median=0.031, p95=0.07).words("fare")
        'fare is off by up to 3.1% (in 95% of answers by up to 7.0%; too few rows for bounds in 1 of 9)'
        """
        counts = {
            "too few rows for bounds": self.few_rows,
            "dependent rows, so bounds are too short,": self.dependent,
            "no bounds to be trusted": self.unconfirmed,
        }
        others = [f"{why} in {count:,} of {self.answers:,}" for why, count in counts.items() if count]
        would = f"{name} {'would be' if self.foreseen else 'is'}"
        if self.median is None or self.p95 is None:
            error = "off by nobody knows how much" if others or self.bounded else "without error"
            return f"{would} {error}" + (f" ({'; '.join(others)})" if others else "")
        more = "; ".join([f"in 95% of answers by up to {self.p95:.1%}", *others])
        return f"{would} off by up to {self.median:.1%} ({more})"
