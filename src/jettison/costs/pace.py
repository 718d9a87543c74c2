"""How much work a worker takes on in one micro-batch, so that the rows of the next one are not too old when it starts."""

from __future__ import annotations

from dataclasses import dataclass

AGE_AIM = 0.9
"""Share of the bound that the oldest row may have waited when its batch starts."""
GROWTH = 1.1
"""By how much the work may grow from batch to batch while rows come early enough."""
LEAST_WORK = 0.25
"""Share of the bound to which work is trimmed at most: where rows come late for other reasons, less is no use."""
STARVATION = 0.05
"""Share of the bound that a task works in any case, on the cheapest rows."""


@dataclass(slots=True)
class Pace:
    """Work that this worker may do in a batch, found by feedback and shared among the tasks that it runs in it.

    What a batch works through is what the next batch's rows have to wait. The ages of the rows themselves show it, with
    everything else that delays them; work is cut in proportion when they are too old, and grows slowly otherwise. A
    worker runs as many tasks in a batch as in the one before, about: each gets its share of what is left.

    Parameters
    ----------
    work_s
        Work in a batch; `None` before the first.

    Examples
    --------
    >>> pace = Pace(work_s=1.0)
    >>> for batch_id in (1, 2):  # two tasks in each batch; rows come at an age at which work stays as it is
    ...     for busy_s in (0.2, 0.1):
    ...         print(round(pace.begin(batch_id, oldest_s=0.9 * 2.0, bound_s=2.0), 2))
    ...         pace.end(busy_s)
    1.0
    0.8
    0.5
    0.8
    """

    work_s: float | None = None
    _batch_id: int | None = None
    _tasks: int = 0
    _tasks_before: int = 0
    _left_s: float = 0.0

    def begin(self, batch_id: int | None, oldest_s: float, bound_s: float) -> float:
        """A task starts whose oldest rows have waited for `oldest_s`; returns the work that it may take on."""
        if batch_id is None or batch_id != self._batch_id:
            self._batch_id, self._tasks_before, self._tasks = batch_id, self._tasks, 0
            self.work_s = self._left_s = self._adapted(oldest_s, bound_s)
        self._tasks += 1
        to_come = max(self._tasks_before - self._tasks + 1, 1)
        return max(self._left_s / to_come, STARVATION * bound_s)

    def end(self, busy_s: float) -> None:
        """The task has worked for so long."""
        self._left_s = max(self._left_s - busy_s, 0.0)

    def _adapted(self, oldest_s: float, bound_s: float) -> float:
        if self.work_s is None:
            return bound_s / 2
        age = oldest_s / (AGE_AIM * bound_s)
        factor = 1.0 / min(age, 2.0) if age > 1.0 else min(GROWTH, 1.0 / max(age, 0.5))
        return min(max(self.work_s * factor, LEAST_WORK * bound_s), bound_s)
