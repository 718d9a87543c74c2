"""All ways to meet more rows than fit, by name: the rivals, one a file, and Jettison under each policy of a workload."""

from __future__ import annotations

from collections.abc import Sequence

from jettison.errors import did_you_mean, refuse
from jettison.lab.prove.rivals import capped, constant, moving_average, oasrs, pid, plain, tail
from jettison.lab.prove.rivals.rival import Rival
from jettison.lab.prove.workload import Workload

OURS = "jettison"
RIVALS = {one.RIVAL.name: one.RIVAL for one in (plain, capped, constant, oasrs, moving_average, tail, pid)}


def entrants(workload: Workload, names: Sequence[str] = ()) -> list[Rival]:
    """Those that can run on a workload: Jettison as its docs advise, then the rivals named, or all.

    `policies` stands for Jettison under each policy that the workload has.
    """
    known = [OURS, "policies", *RIVALS]
    if unknown := [name for name in names if name not in known]:
        hint = did_you_mean(unknown[0], known, otherwise="leave --rivals out to run all of them")
        refuse(f"--rivals must be of {', '.join(known)}", repr(unknown[0]), hint=hint)
    first, *others = (
        Rival(f"{OURS} ({name})", f"Jettison, {name}", lambda stage, made=made: stage.under(made()))  # type: ignore[misc]
        for name, made in workload.policies.items()
    )
    rivals = [rival for name, rival in RIVALS.items() if (not names or name in names) and rival.fits(workload)]
    return [first, *(others if "policies" in names else []), *rivals]
