"""The orders in force for a running query: taken up at its start, accepted or refused, and put on record."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from jettison.control.budget_figures import BudgetFigures
from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.runtime import orders
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import Orders, OrdersFile, Terms

log = logging.getLogger("jettison")


class OrdersInForce:
    """Holds the orders in force and the settings that follow; what cannot be read or followed changes nothing.

    Whoever gives orders to a running query is told by a record that it refuses. Anything else is a fault. At the start those
    on file are taken up or, where these are damaged or refused, the last that were followed.

    Parameters
    ----------
    folder, ledger
        Where orders are given, and where they are put on record.
    terms
        What orders the query can follow.
    spare
        Tells the policy which predicates it is to spare; raises `ValueError` where it cannot.
    fault
        Told what went wrong.
    """

    def __init__(
        self,
        folder: Folder,
        ledger: Ledger,
        terms: Terms,
        spare: Callable[[Sequence[str]], None],
        fault: Callable[[str, str], None],
    ) -> None:
        self._file = OrdersFile(folder, fault)
        self._ledger, self._terms, self._spare, self._fault = ledger, terms, spare, fault
        self.orders, self.settings = Orders(), terms.declared
        on_file = self.look()
        if on_file is None and folder.read(orders.FILE) is None:
            return
        if on_file is None or self.accept(on_file, self._unheeded) is None:
            self.accept(orders.on_record(ledger.last("order")), self._unheeded)

    def look(self) -> Orders | None:
        """The orders on file, if they are others than at the last look."""
        return self._file.look()

    def accept(self, given: Orders, refuse: Callable[[Orders, ValueError], None] | None = None) -> str | None:
        """Follow these from now on, and say in words what changes; `None`, once `refuse` was told, where that cannot be."""
        before = self.orders
        try:
            settings = self._terms.under(given)
            self._spare(() if given.protect is None else given.protect.predicates)
        except ValueError as error:
            (refuse or self._refused)(given, error)
            return None
        self.orders, self.settings = given, settings
        return given.changes(before)

    def over(self, decision: BudgetFigures | None) -> BudgetFigures | None:
        """The figures of a budget for the record, with the order that stands above it if one keeps every row."""
        order = self.orders.why_keep_all("")
        if decision is None or order is None:
            return decision
        return replace(decision, overridden_by=redacted(order.removesuffix(": without it ")))

    def record(self, text: str, **facts: str) -> None:
        """Put on record what is in force; an order is followed also where that fails."""
        in_force = orders.record_of(self.orders)
        try:
            self._ledger.order(time.time(), text, self.settings.latency_bound_s, in_force, **facts)
        except Exception as error:
            self._fault("ledger", f"{type(error).__name__}: {error}")

    def _refused(self, given: Orders, error: ValueError) -> None:
        log.warning("jettison: an order is refused: %s What was in force stays", redacted(str(error)))
        self.record(f"refused: {error}", refused=given.mark)

    def _unheeded(self, given: Orders, error: ValueError) -> None:
        self._fault("order", f"order {given.mark} is refused: {error} What was in force stays")
