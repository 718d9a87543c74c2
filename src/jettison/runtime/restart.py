"""What a restart finds of the run before it: what was published, the last plan, and what controller and policy knew."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jettison.control.controller import Controller, ControlSettings
from jettison.core.documents import encode, packed, parse, plain, restored
from jettison.core.plan import DropPlan
from jettison.core.storage import Folder, newest_batch_us, was_used
from jettison.errors import DamagedPlan
from jettison.policies.base import STATE_BYTES, Policy
from jettison.runtime.ledger import Ledger
from jettison.runtime.plan_board import Publisher
from jettison.runtime.records import Plan
from jettison.runtime.schedule import EVERYWHERE, NOWHERE, Schedule

STATE_FILE, _POLICY = "controller.json", "policy"

Fault = Callable[[str, str], None]
"""Told the kind of what failed, and what happened in words."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the run before this one left, or all of it fresh.

    Parameters
    ----------
    schedule
        What is published. It stays: a batch that a crash interrupted is repeated under the plan that it had.
    last_plan
        The last plan on file or on record.
    begun_us
        The time of the batch that was begun last and may be repeated, if there is one.
    next_version
        Versions go on where they were.
    controller
        As it was saved, or `None`.
    learned
        What the policy knew, as a document that nobody has looked at; `None` where nothing was saved.
    """

    schedule: Schedule
    begun_us: int | None
    last_plan: DropPlan
    next_version: int
    controller: Controller | None
    learned: Any


def found(publisher: Publisher, ledger: Ledger, folder: Folder, settings: ControlSettings, fault: Fault) -> Found:
    """Look at what is on file and on record; what cannot be read is a fault, and never an error."""
    if ledger.damaged:
        fault("ledger", f"{ledger.damaged} damaged records of earlier runs were skipped")
    on_record = ledger.latest_plans()
    try:
        on_file, lost = publisher.published(), False
    except DamagedPlan as error:
        fault("plan", f"the plan on file cannot be read ({error})")
        on_file, lost = None, True
    last = last_plan(None if on_file is None else on_file.newest, on_record, fault)
    if on_file is None:
        # Without the file nobody knows any more in which answers rows are missing.
        is_new = not (lost or on_record or was_used(folder))
        on_file = Schedule.of(DropPlan(0), NOWHERE if is_new else EVERYWHERE)
    next_version = max(last.version, *on_record, 0) + 1
    return Found(on_file, newest_batch_us(folder), last, next_version, *_saved(folder, settings, fault))


def last_plan(on_file: DropPlan | None, on_record: Mapping[int, Plan], fault: Fault) -> DropPlan:
    """The last plan: on file, or in the ledger where that holds a later one or the file is lost."""
    plan = DropPlan(0) if on_file is None else on_file
    for version in sorted((version for version in on_record if version > plan.version), reverse=True):
        try:
            return DropPlan.from_document(plain(on_record[version]))
        except DamagedPlan as error:
            fault("plan", f"plan {version} on record cannot be read ({error})")
    return plan


def save(folder: Folder, controller: Controller, policy: Policy, fault: Fault) -> None:
    """Write what controller and policy know, in place of what was there."""
    document = controller.to_dict()
    if policy.state_type is not None:
        try:
            state = encode(packed(policy.state()))
            if len(state) > STATE_BYTES:
                raise ValueError(f"{len(state)} bytes are more than {STATE_BYTES}")
            document = {**document, _POLICY: {"of": _identity(policy), "crc": _checksum(state), "state": state}}
        except Exception as error:
            fault("state", f"what the policy has learned cannot be saved ({type(error).__name__}: {error})")
    folder.replace(STATE_FILE, encode(document).encode())


def first_plan(policy: Policy, learned: Any, plan: Callable[[], DropPlan], fault: Fault) -> DropPlan:
    """The plan of a policy that knows again what it had learned; of one that knows nothing where that cannot be had."""
    if learned is None or policy.state_type is None:
        return plan()
    knows_nothing = policy.state()
    try:
        if learned["of"] == _identity(policy):  # else it was learned of other columns, windows or regions
            if learned["crc"] != _checksum(learned["state"]):
                raise ValueError("its checksum does not fit")
            policy.restore(restored(parse(learned["state"]), policy.state_type, of=packed))
        return plan()
    except Exception as error:
        fault("state", f"what the policy had learned cannot be read ({type(error).__name__}: {error}); learning again")
        policy.restore(knows_nothing)
        return plan()


def _identity(policy: Policy) -> str:
    return f"{type(policy).__name__} {_checksum(repr(policy.spec))}"


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _saved(folder: Folder, settings: ControlSettings, fault: Fault) -> tuple[Controller | None, Any]:
    """The controller as it was saved, under settings that may have changed meanwhile, and what the policy knew."""
    content = folder.read(STATE_FILE)
    if content is None:
        return None, None
    learned = None
    try:
        document = parse(content)
        learned = document.pop(_POLICY, None)
        controller = Controller.from_dict(settings, document)
        budget = controller.initial()
        if not all(0.0 <= share <= 1.0 for share in (budget.share, budget.late_share)):
            raise ValueError(f"a share to keep of {budget.share}, {budget.late_share} for late rows")
        encode(controller.to_dict())  # what cannot be saved again was not saved like this
    except Exception as error:
        fault("state", f"the controller's state cannot be read ({type(error).__name__}: {error}); starting afresh")
        return None, learned
    return controller, learned


def present_cause(folder: Folder) -> str | None:
    """Why the controller decided as it did when its state was saved last; `None` where that cannot be read."""
    try:
        return str(parse(folder.read(STATE_FILE) or b"null")["budget"]["cause"])
    except (ValueError, TypeError, LookupError):
        return None
