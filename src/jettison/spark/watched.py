"""How wide the bounds of a running query's answers are, or would be: observed where the answers come out.

The result of an aggregate is small, so that this costs a query little. Its answers are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jettison.answers.answer_status import BOUNDED, FEW_ROWS
from jettison.answers.estimate import Estimate, Estimator, Moments, Ops, Weights
from jettison.answers.foreseen import foresee
from jettison.core.answer_bounds import AnswerBounds
from jettison.errors import InvalidInput, refuse

_FIELDS = ("value", "lower", "upper", "kept", "status")
FORESEEN = "foreseen"
_SHARES, _RANKS = [0.5, 0.95], 1000
_foreseeing: ContextVar[bool] = ContextVar("foreseeing", default=False)


@contextmanager
def foreseeing() -> Iterator[None]:
    """Aggregates that are made in here are over marked rows, and their answers have a field `foreseen`."""
    token = _foreseeing.set(True)
    try:
        yield
    finally:
        _foreseeing.reset(token)


def estimated(
    ops: Ops,
    estimator: Estimator,
    weights: Weights,
    moments: Moments,
    z: float,
    answers: Callable[[Estimate], Column],
) -> Column:
    """The answers' structs in an array; in `foreseeing` those over all rows, with the bounds that would follow."""
    if not _foreseeing.get():
        made: Column = estimator(ops, weights, moments, z, lambda _, found: answers(found))
        return made

    def bounds(_: Ops, found: Estimate) -> Column:
        width = (found.upper - found.lower) / 2.0
        return F.struct(F.try_divide(width, F.abs(found.value)).alias("width"), found.enough.alias("enough"))

    risky = F.when(weights.uncertain > 0, foresee(ops, estimator, weights, moments, z, bounds))
    # Of the estimate over all rows only the plain answer is used: nothing else of it is to be planned.
    unnamed = replace(ops, once=lambda values, body: body(*values))
    every_row = replace(weights, total=weights.kept * 1.0)
    whole: Column = estimator(unnamed, every_row, moments, z, lambda _, found: answers(_plain(found)))
    return F.transform(whole, lambda answer: answer.withField(FORESEEN, risky))


def _plain(found: Estimate) -> Estimate:
    plain = found.plain
    return Estimate(value=plain, lower=plain, upper=plain, plain=plain, exact=F.lit(True), enough=F.lit(True))


def watched(answers: DataFrame, metric: str) -> DataFrame:
    """The answers, whose bounds are observed under a name in every micro-batch."""
    found = [field.name for field in answers.schema if _is_answer(field.dataType)]
    if not found:
        hint = "let the function return the aggregate itself, such as `.agg(jt.avg('fare').alias('fare'))`"
        refuse(
            "`watch` needs answers of `jt.` aggregates", f"the columns {answers.columns}", hint=hint, error=InvalidInput
        )
    seen = answers.observe(metric, *[_bounds(answers, name).alias(name) for name in found])
    foreseen = [name for name in found if _is_foreseen(answers, name)]
    return seen.withColumns({name: F.col(f"`{name}`").dropFields(FORESEEN) for name in foreseen}) if foreseen else seen


def _is_answer(kind: Any) -> bool:
    return isinstance(kind, StructType) and tuple(kind.names[: len(_FIELDS)]) == _FIELDS


def _is_foreseen(answers: DataFrame, name: str) -> bool:
    return FORESEEN in answers.select(f"`{name}`.*").columns


def _bounds(answers: DataFrame, name: str) -> Column:
    answer, foreseen = F.col(f"`{name}`"), _is_foreseen(answers, name)
    if foreseen:
        width, enough = answer[FORESEEN]["width"], answer[FORESEEN]["enough"]
        bounded, few = enough, ~enough
    else:
        width = F.try_divide((answer["upper"] - answer["lower"]) / 2.0, F.abs(answer["value"].cast("double")))
        bounded, few = answer["status"] == BOUNDED, answer["status"] == FEW_ROWS
    return F.struct(
        F.count(answer).alias("answers"),
        F.count_if(bounded).alias("bounded"),
        F.count_if(few).alias("few_rows"),
        F.percentile_approx(F.when(bounded, width), _SHARES, _RANKS).alias("widths"),
        F.lit(foreseen).alias(FORESEEN),
    )


def bounds_of(observed: Mapping[str, Any] | None) -> dict[str, AnswerBounds]:
    """What was observed, by the name of the answer; nothing of a batch out of which none came."""
    found = {}
    for name, said in (observed or {}).items():
        if not said or not said["answers"]:
            continue
        median, p95 = said["widths"] or (None, None)
        found[name] = AnswerBounds(
            answers=said["answers"],
            bounded=said["bounded"],
            few_rows=said["few_rows"],
            median=median,
            p95=p95,
            foreseen=said[FORESEEN],
        )
    return found
