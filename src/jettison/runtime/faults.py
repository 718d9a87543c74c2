"""What failed in a run: counted, put on record, said once a kind; and which of it stands, so that nothing can be shed."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from contextlib import AbstractContextManager

from jettison.core.redact import redacted
from jettison.runtime.ledger import Ledger
from jettison.runtime.status import reason

log = logging.getLogger("jettison")

_STOPS_ALL = ("plan", "publish", "silence", "controller")
_STOPS_NEW = "ledger"  # a plan is on record before it is used
_FIGURES = re.compile(r"[\d.,]+")


class Faults:
    """Takes in what fails. A fault stands until the same thing has worked again.

    Parameters
    ----------
    ledger
        Where faults are put on record; one that cannot be is a fault too.
    lock
        Held while they are counted.

    Examples
    --------
    >>> import tempfile, threading
    >>> from jettison.core.storage import Folder
    >>> faults = Faults(Ledger.open(Folder(tempfile.mkdtemp())), threading.RLock())
    >>> faults("ledger", "disk full")
    >>> faults.counts["ledger"], faults.why_not_shedding(keeps_everything=True)
    (1, 'disk full')
    >>> faults.works("ledger")
    >>> faults.counts["ledger"], faults.why_not_shedding(keeps_everything=True)
    (1, '')
    """

    def __init__(self, ledger: Ledger, lock: AbstractContextManager[object]) -> None:
        self._ledger, self._lock = ledger, lock
        self.counts: Counter[str] = Counter()
        self._standing: dict[str, str] = {}
        self._found: set[tuple[str, str]] = set()

    def __call__(self, kind: str, detail: str) -> None:
        """Count a failure, put it on record, and warn the first time its kind occurs."""
        detail = redacted(detail)
        if self._count(kind, detail):
            log.warning("jettison: %s (further faults of this kind are only counted)", detail)
        self._record(kind, detail)

    def finding(self, kind: str, said: str) -> None:
        """Tell what was found, if anything was: each wording once, whatever its figures."""
        said = redacted(said)
        found = kind, _FIGURES.sub("", said)
        if said and found not in self._found:
            self._found.add(found)
            self._count(kind, said)
            log.warning("jettison: %s", said)
            self._record(kind, said)

    def _record(self, kind: str, detail: str) -> None:
        try:
            self._ledger.fault(time.time(), kind, detail)
        except Exception as error:
            if kind != _STOPS_NEW:  # counted already
                self(_STOPS_NEW, f"{type(error).__name__}: {error}")

    def _count(self, kind: str, detail: str) -> bool:
        """Count a failure; returns whether it is the first of its kind."""
        with self._lock:
            self.counts[kind] += 1
            self._standing[kind] = reason(detail)
            return self.counts[kind] == 1

    def works(self, kind: str) -> None:
        """What failed before has worked."""
        with self._lock:
            self._standing.pop(kind, None)

    def why_not_shedding(self, *, keeps_everything: bool) -> str:
        """What stands that keeps all rows from being dropped; empty where nothing does.

        While the ledger fails, a plan that drops stands, but one that keeps everything cannot be replaced.
        """
        with self._lock:
            kinds = (*_STOPS_ALL, _STOPS_NEW) if keeps_everything else _STOPS_ALL
            return next((self._standing[kind] for kind in kinds if kind in self._standing), "")
