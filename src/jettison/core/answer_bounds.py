"""How wide the bounds of a query's answers were in one micro-batch."""

from __future__ import annotations

from msgspec import Struct

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

    def words(self, name: str) -> str:
        """How far off the answers of that name are, or would be.

        >>> AnswerBounds(answers=9, bounded=8, few_rows=1, median=0.031, p95=0.07).words("fare")
        'fare is off by up to 3.1% (in 95% of answers by up to 7.0%; too few rows for bounds in 1 of 9)'
        """
        few = f"too few rows for bounds in {self.few_rows:,} of {self.answers:,}" if self.few_rows else ""
        if self.median is None or self.p95 is None:
            return f"{name} {'would be' if self.foreseen else 'is'} {few or 'without error'}"
        more = "; ".join(filter(None, (f"in 95% of answers by up to {self.p95:.1%}", few)))
        return f"{name} {'would be' if self.foreseen else 'is'} off by up to {self.median:.1%} ({more})"
