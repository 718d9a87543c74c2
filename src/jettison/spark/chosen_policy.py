"""The policy that `policy="auto"` stands for, and why."""

from __future__ import annotations

import importlib

from jettison.core import storage
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, refuse
from jettison.policies import Policy
from jettison.runtime.advice import lately
from jettison.runtime.chooser import Auto, Facts, bounds_on_record, chosen, few_rows
from jettison.runtime.ledger import Ledger

_HOME = {
    "UniformDrop": ("jettison.policies.uniform.uniform_drop", ()),
    "WindowDrop": ("jettison.policies.window.window_drop", ("time", "window")),
    "PriorityDrop": ("jettison.policies.priority.priority_drop", ("priorities",)),
    "ConceptDrop": ("jettison.policies.groups.concept_drop", ("group", "time", "window")),
}


def chosen_policy(said: Auto, home: Folder, *, dry_run: bool) -> tuple[Policy, str]:
    """The policy that the rules lead to by what the program says and what is on record, and the reason."""
    ledger = Ledger((home if said.record is None else storage.home(said.record)) / "ledger")
    start = ledger.last("start")
    if start is None and said.record is not None:
        hint = "name the checkpoint of a run, such as a dry run, that has begun; without `record` it is the query's own"
        refuse(
            "`Auto(record=...)` needs the checkpoint of another run",
            repr(str(said.record)),
            hint=hint,
            error=InvalidInput,
        )
    found = bounds_on_record(lately(ledger))
    before = start or {}
    goes_on = said.record is None and bool(before.get("policy_cause")) and (dry_run or not before.get("dry_run"))
    name, why = chosen(Facts(said, str(before.get("policy") or ""), few_rows(found), goes_on))
    module, fields = _HOME[name]
    policy: Policy = getattr(importlib.import_module(module), name)(**{field: getattr(said, field) for field in fields})
    return policy, why
