"""The driver's book of costs: adds up what tasks have learned, lets old rows fade, and makes a plan of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from jettison import plan_file
from jettison.costs.hashing import SharedHashes
from jettison.costs.report import TaskReport
from jettison.costs.sketch import CostSketch
from jettison.errors import DamagedPlan, InvalidSetting, explain
from jettison.plan import DropPlan
from jettison.schedule import Schedule
from jettison.settings import CostDrop

FORGET = 0.2
"""Share of the weight of older rows that goes each time that enough new ones came."""
FORGET_EVERY = 1024
_NEVER_US = 10**16
_FILE_SIZE = 4096


@dataclass(slots=True)
class CostBook:
    """Costs of all executors, one version after the other.

    Reports come as a running total, as an accumulator gives it; what is new in it is added once.

    Parameters
    ----------
    costs
        What is known, handed to every task.
    version
        Grows with every change, across restarts.
    """

    costs: CostSketch
    version: int = 0
    _told: TaskReport = field(init=False)
    _new_rows: float = 0.0

    def __post_init__(self) -> None:
        self._told = TaskReport.empty(self.costs.hashes)

    @classmethod
    def empty(cls, hashes: SharedHashes) -> CostBook:
        """A book in which nothing is written."""
        return cls(CostSketch(hashes))

    def tell(self, total: TaskReport) -> bool:
        """Take in what is new in a running total; returns whether anything was."""
        if total.tasks == self._told.tasks:
            return False
        fresh = CostSketch(self.costs.hashes)
        fresh.counts = total.costs.counts - self._told.costs.counts
        fresh.costs = total.costs.costs - self._told.costs.costs
        self._new_rows += fresh.rows_learned
        if self._new_rows >= FORGET_EVERY:
            self.costs.forget(FORGET)
            self._new_rows = 0.0
        self.costs.merge(fresh)
        self._told = total
        self.version += 1
        return True

    def plan(self, point: str, bound_s: float, keep_fraction: float) -> DropPlan:
        """What is known, as the plan that tasks obey."""
        setting = CostDrop(bound_s=bound_s, keep_fraction=keep_fraction, **self.costs.to_dict())
        return DropPlan(self.version, {point: setting}, cause=f"costs of {self.costs.rows_learned:.0f} rows are known")

    def encode(self, point: str, bound_s: float, keep_fraction: float = 1.0) -> bytes:
        """The plan as a file. Costs do not expire: a dead driver leaves executors what they know."""
        plan = self.plan(point, bound_s, keep_fraction)
        return plan_file.encode(
            Schedule.of(plan), valid_until_us=_NEVER_US, size=_FILE_SIZE + 12 * len(self.costs.counts)
        )

    @classmethod
    def decode(cls, content: bytes, point: str) -> CostBook:
        """Restore a book from a plan's file, or raise `DamagedPlan`."""
        plan = plan_file.decode(content).newest
        setting = plan.points.get(point)
        if not isinstance(setting, CostDrop):
            raise DamagedPlan(
                explain(
                    f"learned costs of {point!r} in the plan",
                    repr(setting),
                    hint="costs are learned anew; nothing has to be done",
                )
            )
        try:
            return cls(CostSketch.from_dict(asdict(setting)), plan.version)
        except InvalidSetting as error:
            raise DamagedPlan(
                explain(
                    "learned costs that make sense", str(error), hint="costs are learned anew; nothing has to be done"
                )
            ) from error
