"""Borrowed estimates for the answers of windows: for whoever reads them, after the query and beside its own values.

Answers are small, so this runs where they are read: over a table of them, or window by window as they come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.answers.answer_status import BOUNDED, FROM_HISTORY, FROM_NEIGHBOURS, UNCONFIRMED, UNKNOWN
from jettison.answers.borrow import Borrowed, borrow, effective_by_counts
from jettison.errors import refuse

EVIDENCE = ("mean", "variance", "kept", "effective_rows", "rows")
"""Fields of the struct that `jf.evidence` makes of a group's rows."""


class Borrower:
    """Gives every group of a window an estimate: its own mean, drawn towards its earlier windows or its neighbours.

    An estimate of which less than nine tenths are the group's own rows says so by its status, and where the rest came
    from. It is biased towards that, and has on average the smaller error; the query's own answer stays as it was,
    unbiased. A group of which no row seems to be missing keeps its own mean, unconfirmed: what is left cannot tell more.

    Only windows that were over when this one began are borrowed from: windows that overlap share rows, and would
    confirm each other's errors.

    Parameters
    ----------
    window, group
        Columns of the window (a struct of `start` and `end`, as Spark's `window` makes it) and of the group.
    evidence
        Column made by `jf.evidence`.
    neighbourhood
        Column that is equal for groups that resemble each other; all groups do, unless given.
    confidence
        Of the bounds. Their coverage is a mean over windows.
    max_groups
        Most groups whose earlier estimates are remembered.

    Examples
    --------
    >>> def answers(start, means, kept):
    ...     rows = zip("abc", means, kept)
    ...     seen = [{"mean": m, "variance": 4.0, "kept": k, "effective_rows": k, "rows": 90} for _, m, k in rows]
    ...     window = {"start": start, "end": start + 60}
    ...     return pa.table({"window": [window] * 3, "route": list("abc"), "fare": seen})
    >>> borrower = Borrower(group="route", evidence="fare")
    >>> before = borrower.estimates(answers(0, [10.0, 22.0, 31.0], [50, 50, 50]))
    >>> after = borrower.estimates(answers(60, [10.1, 21.8, None], [50, 50, 0]))["estimate"].to_pylist()
    >>> round(after[2]["value"]), after[2]["kept"], after[2]["status"]
    (31, 0, 'borrowed from history')
    """

    def __init__(
        self,
        *,
        group: str,
        evidence: str,
        window: str = "window",
        neighbourhood: str | None = None,
        confidence: float = 0.95,
        max_groups: int = 1_000_000,
    ) -> None:
        self._max_groups = max_groups
        self._window, self._group, self._evidence = window, group, evidence
        self._neighbourhood, self._confidence = neighbourhood, confidence
        self._history: dict[Any, float] = {}
        self._waiting: list[tuple[Any, dict[Any, float]]] = []

    def estimates(self, answers: pa.Table) -> pa.Table:
        """The same rows, ordered by window, with a struct `estimate`: value, lower, upper, kept and status.

        Its status is 'bounded', 'borrowed from history', 'borrowed from neighbours', 'unconfirmed' without bounds where no
        row seems to be missing, or 'unknown' without a value where nothing is known of any group.
        All groups of a window must come together, and windows in the order of their starts, here and from call to call.
        """
        self._check(answers)
        rows = answers.column(self._window).to_pylist()
        starts = sorted({row["start"] for row in rows})
        parts = [self._of_window(answers.filter(pa.array([row["start"] == start for row in rows]))) for start in starts]
        return pa.concat_tables(parts) if parts else answers

    def _of_window(self, answers: pa.Table) -> pa.Table:
        window = answers.column(self._window)[0].as_py()
        self._remember_until(window["start"])
        groups = answers.column(self._group).to_pylist()
        seen = answers.column(self._evidence).combine_chunks()
        mean, variance, kept, effective, rows = (_floats(seen.field(name)) for name in EVIDENCE)
        made = borrow(
            mean,
            variance,
            np.nan_to_num(kept),
            # No number means that no row could be dropped. By exact counts some may have been all the same.
            effective_rows=np.minimum(_or(effective, np.inf), effective_by_counts(np.nan_to_num(kept), rows)),
            group_rows=_or(rows, np.inf),
            history=[self._history.get(group, np.nan) for group in groups],
            neighbourhood=self._places(answers),
            confidence=self._confidence,
        )
        # Only what rests on rows of the window itself is remembered: a guess must not confirm itself.
        known = {group: float(v) for group, v, k in zip(groups, made.value, kept, strict=True) if k > 0}
        self._waiting.append((window["end"], known))
        return answers.append_column("estimate", _answers(made, np.nan_to_num(kept)))

    def _remember_until(self, start: Any) -> None:
        for _, known in (one for one in self._waiting if one[0] <= start):
            for group, value in known.items():
                self._history.pop(group, None)  # to the end: those that were not seen for longest are forgotten first
                self._history[group] = value
        self._waiting = [one for one in self._waiting if not one[0] <= start]
        for group in list(self._history)[: max(len(self._history) - self._max_groups, 0)]:
            del self._history[group]

    def _places(self, answers: pa.Table) -> NDArray[np.int64] | None:
        if self._neighbourhood is None:
            return None
        encoded = answers.column(self._neighbourhood).combine_chunks().dictionary_encode()
        return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)

    def _check(self, answers: pa.Table) -> None:
        wanted = [self._window, self._group, self._evidence, *filter(None, [self._neighbourhood])]
        _require(wanted, answers.column_names, "columns of the answers", "name them as the query does")
        kind = answers.schema.field(self._evidence).type
        names = [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        _require(EVIDENCE, names, f"fields of {self._evidence!r}", 'aggregate jf.evidence("column") next to the answer')


def _answers(made: Borrowed, kept: NDArray[np.float64]) -> pa.StructArray:
    whole = (kept > 0) & (made.lower == made.upper)
    status = np.select(
        [np.isnan(made.value), whole, made.borrowed & made.from_history, made.borrowed],
        [UNKNOWN, UNCONFIRMED, FROM_HISTORY, FROM_NEIGHBOURS],
        BOUNDED,
    )
    lower, upper = (np.where(whole, np.nan, bound) for bound in (made.lower, made.upper))
    parts = {
        "value": pa.array(made.value, from_pandas=True),
        "lower": pa.array(lower, from_pandas=True),
        "upper": pa.array(upper, from_pandas=True),
        "kept": pa.array(kept, pa.int64()),
        "status": pa.array(status, pa.string()),
    }
    return pa.StructArray.from_arrays(list(parts.values()), names=list(parts))


def _require(wanted: Iterable[str], there: Iterable[str], what: str, hint: str) -> None:
    if missing := [name for name in wanted if name not in set(there)]:
        refuse(f"{what} must include {', '.join(missing)}", repr(sorted(there)), hint=hint)


def _floats(values: pa.Array) -> NDArray[np.float64]:
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), float)


def _or(values: NDArray[np.float64], otherwise: float) -> NDArray[np.float64]:
    return np.where(np.isnan(values), otherwise, values)
