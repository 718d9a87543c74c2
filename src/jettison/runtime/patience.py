"""How long a plan is renewed while nothing is heard of its query: a plan must not outlive its controller's hearing."""

from __future__ import annotations

from time import monotonic

_LEASES = 10.0
_BATCHES = 5.0


class Patience:
    """Runs out when reports stay away for far longer than any batch took: their way here must be cut.

    A batch may take long, and the plan must be alive when it ends; so the patience is five times the longest batch so
    far, and ten leases at least.

    Examples
    --------
    >>> Patience(lease_s=30.0).lasts
    True
    """

    def __init__(self, lease_s: float) -> None:
        self._limit_s = _LEASES * lease_s
        self._heard_at = monotonic()
        self._ran_out = False

    def heard(self, batch_s: float = 0.0) -> None:
        """Note a sign of life: a report of a batch that took `batch_s`, or that nothing arrives."""
        self._heard_at, self._ran_out = monotonic(), False
        self._limit_s = max(self._limit_s, _BATCHES * batch_s)

    @property
    def lasts(self) -> bool:
        """Whether the plan is to be renewed."""
        return monotonic() - self._heard_at <= self._limit_s

    def ran_out(self) -> bool:
        """Whether it has run out since the last time that anybody asked: each silence is complained of once."""
        before, self._ran_out = self._ran_out, not self.lasts
        return self._ran_out and not before
