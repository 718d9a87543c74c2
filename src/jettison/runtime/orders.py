"""Orders: what a person has set while the query runs, in one document beside its checkpoint.

Whoever may write the checkpoint may give them; there is no server to ask. The pilot looks at the document on its clock,
puts every change on record, and acts on it by its next plan. Orders stand until they are cleared, across restarts.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from jettison.control.control_settings import ControlSettings
from jettison.core.documents import Number, Seconds, convert, decode, encode, parse, plain
from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.errors import JettisonError, refuse

FILE = "orders.json"
LONGEST_WORDS = 200
"""Of a name or a reason, in characters."""
MOST_BYTES = 64 * 1024
"""Of the document: more than the longest orders take."""
_Words = Annotated[str, msgspec.Meta(max_length=LONGEST_WORDS)]


class DamagedOrders(JettisonError, ValueError):
    """The document of orders does not hold any."""


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who has set something, why and when."""

    author: _Words
    reason: _Words = ""
    at_s: Number

    def __str__(self) -> str:
        return f"set by {self.author}{': ' if self.reason else ''}{self.reason}"


class LatencyOrder(Order, frozen=True, kw_only=True):
    """Another bound on row latency than the program's."""

    seconds: Seconds


class ProtectOrder(Order, frozen=True, kw_only=True):
    """Predicates of rows that no plan may drop."""

    predicates: Annotated[tuple[_Words, ...], msgspec.Meta(min_length=1, max_length=16)]


class Orders(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All orders that stand; `mark` tells one writing of them from all others.

    Examples
    --------
    >>> orders = Orders(keep_everything=Order(author="ann", reason="audit", at_s=0.0))
    >>> list(orders.words()), orders.why_keep_all("twice too many rows")
    (['keep everything (set by ann: audit)'], 'keep everything (set by ann: audit)')
    """

    mark: _Words = ""
    latency: LatencyOrder | None = None
    keep_everything: Order | None = None
    dry_run: Order | None = None
    protect: ProtectOrder | None = None

    def words(self) -> Iterator[str]:
        """Each order that stands, as a person reads it."""
        if self.latency is not None:
            yield f"a latency bound of {self.latency.seconds:g} s ({self.latency})"
        if self.keep_everything is not None:
            yield f"keep everything ({self.keep_everything})"
        if self.dry_run is not None:
            yield f"dry run ({self.dry_run})"
        if self.protect is not None:
            yield f"protect {' and '.join(self.protect.predicates)} ({self.protect})"

    def changes(self, before: Orders) -> str:
        """What is other than `before`, in words; empty where nothing is."""
        now, then = list(self.words()), list(before.words())
        ended = [f"no longer: {one}" for one in then if one not in now]
        return "; ".join([*(one for one in now if one not in then), *ended])

    def why_keep_all(self, cause: str) -> str | None:
        """Why every row is kept whatever the load; `None` where no order says so. `cause` is the controller's own."""
        if self.keep_everything is not None:
            return f"keep everything ({self.keep_everything})"
        return None if self.dry_run is None else f"dry run ({self.dry_run}): without it {cause}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a query can be told.

    Parameters
    ----------
    declared
        What its program says, which holds where no order stands.
    least_bound_s
        Latency bounds below this are refused.
    companion
        Name of what drops rows beside the guards, and listens to no plan; empty where nothing does.
    """

    declared: ControlSettings
    least_bound_s: float = 0.0
    companion: str = ""

    def under(self, orders: Orders) -> ControlSettings:
        """What the controller holds under `orders`; raises `InvalidSetting` where the query cannot follow them."""
        if self.companion and orders.why_keep_all("") is not None:
            expected, hint = (
                "orders that the whole query can follow",
                "stop the query, and start it without that function",
            )
            refuse(expected, f"to keep everything, while {self.companion!r} drops rows by rules of its own", hint=hint)
        if orders.latency is None:
            return self.declared
        bound_s, waits_s = orders.latency.seconds, self.declared.trigger_interval_s
        if bound_s <= max(self.least_bound_s, waits_s):
            expected = f"a latency bound above {max(self.least_bound_s, waits_s):.2g} s"
            hint = "a row waits for a trigger, and a batch has a fixed cost, whatever is dropped"
            refuse(expected, f"{bound_s:g} s", hint=hint)
        return replace(self.declared, latency_bound_s=bound_s)


def write(home: Folder, orders: Orders) -> Orders:
    """Put these orders in place of those before, under a new mark; returns them with it."""
    orders = msgspec.structs.replace(orders, mark=uuid4().hex)
    text = encode(orders)
    home.replace(FILE, encode({"crc": zlib.crc32(text.encode()), "orders": text}).encode())
    return orders


def standing(home: Folder) -> Orders:
    """The orders that stand; none where there is no document. Raises `DamagedOrders` where it holds something else."""
    return _read(home.read(FILE))


class OrdersFile:
    """Looks at the document again and again, and reads it where it has changed.

    Parameters
    ----------
    home
        Where everything of Jettison's lies beside the checkpoint.
    fault
        Told, once for each content, that nothing can be made of it.
    """

    def __init__(self, home: Folder, fault: Callable[[str, str], None]) -> None:
        self._home, self._fault = home, fault
        self._content: bytes | None = None
        self._failed = ""

    def look(self) -> Orders | None:
        """The orders that stand now, if they are others than at the last look that could be read."""
        try:
            content = self._home.read(FILE)
            if content == self._content:
                return None
            self._content = content
            orders = _read(content)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if why != self._failed:
                self._failed = why
                self._fault("order", f"{why}; what was in force stays")
            return None
        self._failed = ""
        return orders


def on_record(record: Any) -> Orders:
    """The orders of a record of the ledger; none where it holds none."""
    try:
        return convert((record or {}).get("orders") or {}, Orders)
    except ValueError:
        return Orders()


def record_of(orders: Orders) -> dict[str, Any]:
    """Orders as the ledger keeps them, without secrets."""
    document: dict[str, Any] = plain(orders)
    for order in (document[name] for name in ("latency", "keep_everything", "dry_run", "protect")):
        if order is not None:
            order["reason"] = redacted(order["reason"])[:LONGEST_WORDS]
    return document


def author() -> str:
    """Whoever the operating system says runs this process."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name[:LONGEST_WORDS]
    except (ImportError, KeyError):
        import getpass

        try:
            return getpass.getuser()[:LONGEST_WORDS]
        except (OSError, KeyError):
            return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


class _Sealed(Struct, frozen=True, forbid_unknown_fields=True):
    crc: int
    orders: str


def _read(content: bytes | None) -> Orders:
    if content is None:
        return Orders()
    try:
        if len(content) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES:,} bytes")
        sealed = decode(content, _Sealed)
        if zlib.crc32(sealed.orders.encode()) != sealed.crc:
            raise ValueError("its checksum does not fit")
        return convert(parse(sealed.orders), Orders)
    except ValueError as error:
        hint = "give orders by `jettison set`; `jettison set CHECKPOINT --clear all` writes the document again"
        got = f"{content[:80]!r} ({error})"
        refuse("orders to a query", got, where=FILE, hint=hint, error=DamagedOrders, cause=error)
