"""Checkpoints as queries leave them, for tests of what shows them, with names that try to be markup."""

from __future__ import annotations

from pathlib import Path

from jettison.control.budget_figures import BudgetFigures, Expected
from jettison.control.load_model import Costs
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.policies.base import Policy
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime.ledger import Ledger

EVIL = "<img src=x onerror='window.broken=1'><script>window.broken=1</script>"
NOW_S = 1_794_991_577.0


def figures(share: float = 0.5) -> BudgetFigures:
    """What a controller knew that sees twice too many rows."""
    return BudgetFigures(
        share,
        share,
        3.0,
        1000.0,
        500,
        Costs(0.5, 1e-4, 9e-4),
        0.1,
        1.0,
        Expected(rows=1500, kept_rows=750, latency_s=2.4),
    )


def query(
    checkpoint: Path,
    *,
    batches: int = 40,
    point: str = "rides",
    setting: Setting | None = None,
    policy: Policy | None = None,
    cause: str = "twice too many rows",
    ended: bool = True,
    at_s: float = NOW_S,
) -> Ledger:
    """A query of so many batches, one a second, that drops half of its rows from the tenth on."""
    ledger = Ledger.open(Folder(checkpoint) / "jettison" / "ledger")
    outline = {} if policy is None else {"outline": dict(policy.outline())}
    name = "UniformDrop" if policy is None else type(policy).__name__
    ledger.start(at_s, latency_bound_s=3.0, points=[point], restored=False, policy=name, dry_run=False, **outline)
    ledger.plan(at_s, DropPlan(1, {point: RandomDrop()}, cause="start: no batch has been measured yet"))
    for number in range(batches):
        shed = number >= 10
        if number == 10:
            plan = DropPlan(2, {point: setting or RandomDrop(0.5)}, cause=cause)
            ledger.plan(at_s + number, plan, figures())
        rows = {point: PointStats(1000, 500 if shed else 1000)}
        stats = Stats(number, at_s + number, 0.9, rows, plan_version=2 if shed else 1, waiting_rows=20 * number)
        given = dict(bounded=90, few_rows=10, median=0.02 + number / 1000, p95=0.1)
        answers = {EVIL: AnswerBounds(answers=100, **given)} if shed else {}
        ledger.batch(stats, latency_s=3.5 if number == 9 else 1.5, lag=(1500 + number, 2.5), answers=answers)
    if ended:
        ledger.stop(at_s + batches, error=None, faults={})
    return ledger
