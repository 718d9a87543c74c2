"""How wide the bounds of a running query's answers are, or would be: observed where the answers come out.

The result of an aggregate is small, so that this costs a query little. Its answers are not touched.

A dry run knows of each row whether it would be kept, and what it would weigh. Rows carry that on in the low digits of
their weight (`marked`), through whatever the query does with them: for all else they weigh 1, to six digits. Aggregates
that are made within `foreseeing` give the answer over all rows and, as a field, the one over the rows that would be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.answers.answer_status import BOUNDED, DEPENDENT_ROWS, FEW_ROWS, UNCONFIRMED
from jettison.core.answer_bounds import AnswerBounds
from jettison.errors import InvalidInput, refuse

FORESEEN = "foreseen"
STEP = 2.0**-24
"""What a unit of weight is in a mark. Exact to eight digits, for weights up to a million below a tenth."""
_FIELDS = ("value", "lower", "upper", "kept", "status")
_COUNTED = {"bounded": BOUNDED, "few_rows": FEW_ROWS, "dependent": DEPENDENT_ROWS, "unconfirmed": UNCONFIRMED}
_SHARES, _RANKS = [0.5, 0.95], 1000
_MOST = 2.0**1023  # that a record holds
_foreseeing: ContextVar[bool] = ContextVar("foreseeing", default=False)


@contextmanager
def foreseeing() -> Iterator[None]:
    """Aggregates that are made in here are over marked rows, and foresee."""
    token = _foreseeing.set(True)
    try:
        yield
    finally:
        _foreseeing.reset(token)


def marked(would_weigh: Column) -> Column:
    """The weight in a dry run of a row that would have this one; null of a row that would be dropped."""
    return F.coalesce(1.0 + STEP * (would_weigh - 1.0), F.lit(1.0 - STEP))


def unmarked(weight: Column) -> Column:
    """The weight of a row for what does not foresee: 1 in `foreseeing`, whatever its mark."""
    return F.lit(1.0) if _foreseeing.get() else weight


def foreseen(aggregate: Callable[..., Column]) -> Callable[..., Column]:
    """By its last argument, the weight; in `foreseeing` over all rows, with what those kept would give as a field."""

    def made(*given: Any) -> Column:
        if not _foreseeing.get():
            return aggregate(*given)
        *before, weight = given
        marks = F.col(weight) if isinstance(weight, str) else weight
        would = F.when(marks >= 1.0, 1.0 + (marks - 1.0) / STEP)
        return aggregate(*before, F.lit(1.0)).withField(FORESEEN, aggregate(*before, would))

    return made


def watched(answers: DataFrame, metric: str) -> DataFrame:
    """The answers, whose bounds are observed under a name in every micro-batch; nothing foreseen is left in them."""
    found = [field.name for field in answers.schema if _is_answer(field.dataType)]
    if not found:
        hint = "let the function return the aggregate itself, such as `.agg(jt.avg('fare').alias('fare'))`"
        refuse(
            "`watch` needs answers of `jt.` aggregates", f"the columns {answers.columns}", hint=hint, error=InvalidInput
        )
    dry = [name for name in found if FORESEEN in answers.select(f"`{name}`.*").columns]
    seen = answers.observe(metric, *[_bounds(F.col(f"`{name}`"), name in dry).alias(name) for name in found])
    return seen.withColumns({name: F.col(f"`{name}`").dropFields(FORESEEN) for name in dry}) if dry else seen


def _is_answer(kind: Any) -> bool:
    return isinstance(kind, StructType) and tuple(kind.names[: len(_FIELDS)]) == _FIELDS


def _bounds(truth: Column, is_dry: bool) -> Column:
    answer = truth[FORESEEN] if is_dry else truth
    bounded, value = answer["status"] == BOUNDED, answer["value"].cast("double")
    width = F.try_divide((answer["upper"] - answer["lower"]) / 2.0, F.abs(value))
    whole = truth["value"].cast("double")
    error = F.try_divide(F.abs(value - whole), F.abs(whole)) if is_dry else F.lit(None).cast("double")
    return F.struct(
        F.count(truth).alias("answers"),
        *[F.count_if(answer["status"] == status).alias(name) for name, status in _COUNTED.items()],
        *[
            F.percentile_approx(F.when(bounded & (part < _MOST), part), _SHARES, _RANKS).alias(name)
            for name, part in (("widths", width), ("errors", error))
        ],
        F.lit(is_dry).alias(FORESEEN),
    )


def bounds_of(observed: Mapping[str, Any] | None) -> dict[str, AnswerBounds]:
    """What was observed, by the name of the answer; nothing of a batch out of which none came."""
    found = {}
    for name, said in (observed or {}).items():
        if not said or not said["answers"]:
            continue
        (median, p95), (median_error, p95_error) = (said[which] or (None, None) for which in ("widths", "errors"))
        found[name] = AnswerBounds(
            answers=said["answers"],
            **{counted: said[counted] for counted in _COUNTED},
            median=median,
            p95=p95,
            foreseen=said[FORESEEN],
            median_error=median_error,
            p95_error=p95_error,
        )
    return found
