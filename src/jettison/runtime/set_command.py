"""`jettison set`: give orders to a query through its checkpoint, and hear what it says to them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from jettison.core import storage
from jettison.core.storage import Folder
from jettison.errors import InvalidSetting, Unsupported, did_you_mean, refuse
from jettison.runtime import orders
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import LONGEST_WORDS, DamagedOrders, LatencyOrder, Order, Orders, ProtectOrder, author
from jettison.runtime.owner import SILENT_S, sign_of_life

_FIELDS = {"latency": "latency", "keep-everything": "keep_everything", "dry-run": "dry_run", "protect": "protect"}
_ALL = "all"
_ANSWER_S, _LOOK_S = 10.0, 0.25


def run_set(
    console: Console,
    checkpoint: str,
    *,
    bound_s: float | None = None,
    keep_everything: bool = False,
    dry_run: bool = False,
    protect: Sequence[str] = (),
    clear: Sequence[str] = (),
    reason: str = "",
) -> None:
    """Write the orders, wait for a running query to follow or refuse them, and say which it was."""
    if len(reason) > LONGEST_WORDS:
        refuse(f"--reason must have at most {LONGEST_WORDS} characters", f"{len(reason)}", hint="say it shorter")
    ended, home = _cleared(clear), storage.known_home(checkpoint)
    by: dict[str, Any] = {"author": author(), "reason": reason, "at_s": time.time()}
    given: dict[str, Any] = dict.fromkeys(ended)
    given |= {"latency": LatencyOrder(**by, seconds=bound_s)} if bound_s is not None else {}
    given |= {"keep_everything": Order(**by)} if keep_everything else {}
    given |= {"dry_run": Order(**by)} if dry_run else {}
    if any(not 0 < len(sql) <= LONGEST_WORDS for sql in protect):
        hint = "write it as `PriorityDrop` was given it"
        refuse(f"--protect must be SQL of at most {LONGEST_WORDS} characters", repr(protect), hint=hint)
    given |= {"protect": ProtectOrder(**by, predicates=tuple(protect))} if protect else {}
    try:
        _give(console, home, given) if given else _show(console, home)
    except PermissionError as error:
        hint = "run it as the user who runs the query: the checkpoint's permissions decide who may"
        refuse("a checkpoint that you may read and write", str(error), hint=hint, error=Unsupported, cause=error)


def _give(console: Console, home: Folder, given: dict[str, Any]) -> None:
    try:
        before = orders.standing(home)
    except DamagedOrders:
        if set(_FIELDS.values()) - set(given):  # what else may be on file is not known
            raise
        before = orders.write(home, Orders())
    wanted = replace(before, **given)
    changed = wanted.changes(before)
    if not changed:
        _show(console, home)
        return
    written = orders.write(home, wanted)
    sign = sign_of_life(home)
    if sign is None or sign.at_s is None or time.time() - sign.at_s > SILENT_S:
        _say(console, changed)
        _say(console, "no query runs on this checkpoint: the next one that is started will follow it, or say why not")
        return
    refusal = _refusal(Ledger(home / "ledger"), written)
    if refusal:
        if orders.standing(home).mark == written.mark:
            orders.write(home, before)
        raise InvalidSetting(f"{refusal} What stood before stands again.")
    _say(console, changed)
    _say(console, "the query follows it from its next plan on, and after a restart; it is on record")


def _refusal(ledger: Ledger, written: Orders) -> str:
    """What the running query has against the orders; empty once it has put on record that it follows them."""
    deadline_s = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
        carried = ledger.last("order") or {"orders": {}}
        if carried["orders"].get("mark") == written.mark:
            return ""
        if carried.get("refused") == written.mark:
            return str(carried["text"]).removeprefix("refused: ")
    hint = "look at `jettison top`: is the query alive, and may it read what you write? Once it does, it will follow"
    refuse(f"an answer of the query within {_ANSWER_S:g} s", "none", hint=hint, error=Unsupported)


def _cleared(names: Sequence[str]) -> list[str]:
    """The fields of the orders that are to end."""
    for name in names:
        if name not in (*_FIELDS, _ALL):
            hint = did_you_mean(name, (*_FIELDS, _ALL), otherwise=f"write one of {', '.join(_FIELDS)} or {_ALL}")
            refuse("--clear must name what `jettison set` can set", repr(name), hint=hint)
    return [field for name, field in _FIELDS.items() if name in names or _ALL in names]


def _show(console: Console, home: Folder) -> None:
    for line in [*orders.standing(home).words()] or ["nothing is set: the query does as its program says"]:
        _say(console, line)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
