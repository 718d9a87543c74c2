"""All ways to meet more rows than fit, by name: the rivals, one a file, and Jettison under each policy of a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jettison.errors import did_you_mean, refuse
from jettison.lab.bench.streams import KeepShare
from jettison.lab.prove.rivals import capped, constant, moving_average, oasrs, pid, plain, tail
from jettison.lab.prove.rivals.rival import Entry, Rival, Stage
from jettison.lab.prove.workload import Workload
from jettison.policies.base import Policy

OURS, TOLD, POLICIES = "jettison", "told", "policies"
RIVALS = {one.RIVAL.name: one.RIVAL for one in (plain, capped, constant, oasrs, moving_average, tail, pid)}


def entrants(workload: Workload, names: Sequence[str] = ()) -> list[Rival]:
    """Those that can run on a workload: Jettison as its docs advise, then the rivals named, or all.

    `told` stands for Jettison that is told its capacity, `policies` for Jettison under each policy that the workload has;
    all of them run where the workload says why others cannot.
    """
    known = [OURS, TOLD, POLICIES, *RIVALS]
    if unknown := [name for name in names if name not in known]:
        hint = did_you_mean(unknown[0], known, otherwise="leave --rivals out to run all of them")
        refuse(f"--rivals must be of {', '.join(known)}", repr(unknown[0]), hint=hint)
    every = not names and bool(workload.left_out)
    first, *others = (_ours(name, made) for name, made in workload.policies.items())
    told = _ours(*next(iter(workload.policies.items())), told=True)
    rivals = [rival for name, rival in RIVALS.items() if (not names or name in names) and rival.fits(workload)]
    ours = [first, *([told] if not names or TOLD in names else []), *(others if POLICIES in names or every else [])]
    return [*ours, *rivals]


def _ours(name: str, made: Callable[[], Policy], *, told: bool = False) -> Rival:
    """Jettison under a policy; told its capacity, it is told what it processes itself, as rivals are."""
    if not told:
        return Rival(f"{OURS} ({name})", f"Jettison, {name}", lambda stage: stage.under(made()))
    what, unshed = f"Jettison, {name}, told its capacity", lambda stage: stage.under(KeepShare(1.0))

    def enter(stage: Stage) -> Entry:
        return stage.under(made(), capacity_rows_per_s=stage.tuned)

    return Rival(f"{OURS} ({name}, told its capacity)", what, enter, unshed, of_own=1.0)
