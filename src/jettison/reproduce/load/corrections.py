"""What the text leaves out, one switch at a time; what theorem 4.1 overlooks; and what ours owes to which part."""

from __future__ import annotations

import numpy as np

from jettison.reproduce.claims import Claim
from jettison.reproduce.load.sweep import FULL_KNOWLEDGE, LAS, OURS, Measured, Point, Runs, run_sweep
from jettison.reproduce.report import Section
from jettison.sim.load import kernels
from jettison.sim.load.algorithms import Algorithm, OursSettings, PaperSettings, full_knowledge, las, ours
from jettison.sim.load.workload import StreamSettings, streams

BOUND_MS = 6.4
COLD = "LAS, literal start"
LISTING = "LAS, literal CHECK"
KNOWING = "ours, costs known"


def run_corrections(runs: Runs) -> tuple[Section, list[Claim]]:
    """Every variant on the same streams, at the paper's defaults and once with time to spare at first."""
    sweep = run_sweep([Point(0.25, StreamSettings(), BOUND_MS, _variants())], runs)

    def at(name: str) -> Measured:
        return sweep.at(0.25, name)

    config = runs.config
    saved = 1.0 - at(KNOWING).drop_share / at(FULL_KNOWLEDGE).drop_share
    fewest = _fewest_share(runs)
    text = sweep.table("under-provisioning") + (
        f"\n\nNo choice whatsoever can drop fewer than {fewest:.4f} of the rows on average over these streams: "
        f"the costliest rows, until the rest fits into the time that there is."
    )
    return Section("Literal forms, theorem 4.1, and the parts of ours", text), [
        Claim("listing-deadlock", "CHECK as listed drops everything once the mean is above the bound: share dropped",
              "", at(LISTING).drop_share, at_least=0.99, config=config),
        Claim("literal-start", "the NOP start leaves a backlog: mean wait over that of a warm start",
              "no load shedding is required", at(COLD).over_bound / at(LAS).over_bound, at_least=10.0, config=config),
        Claim("theorem-4.1", "no online shedder that holds the bound drops fewer rows than CHECK with all costs known: "
              "share that dropping the costliest saves", "0", saved, at_most=0.0, config=config),
        Claim("theorem-4.1-gap", "dropping the costliest saves a quarter of the drops: share",
              "", saved, at_least=0.24, config=config),
        Claim("ours-near-fewest", "with costs known ours drops few more rows than the fewest possible: ratio",
              "", at(KNOWING).drop_share / fewest, at_most=1.25, config=config),
        Claim("ours-sketch-enough", "a sketch of 64 KiB costs ours few rows: drops over those with costs known",
              "", at(OURS).drop_share / at(KNOWING).drop_share, at_most=1.1,
              config=config | {"sketch_bytes": 16 * OursSettings().rows * OursSettings().columns}),
        Claim("ours-cold-start", "ours starts cold, without any warm-up, and still holds: mean wait / bound",
              "", at(OURS).over_bound, at_most=1.05, config=config),
    ]  # fmt: skip


def _variants() -> dict[str, Algorithm]:
    paper = PaperSettings(bound_ms=BOUND_MS)
    return {
        FULL_KNOWLEDGE: full_knowledge(paper),
        LAS: las(paper),
        LISTING: las(PaperSettings(check=kernels.LISTING)),
        COLD: las(PaperSettings(warm_up=False)),
        "LAS, literal synchronisation": las(PaperSettings(sync=kernels.LITERAL)),
        "LAS, clock not clamped": las(PaperSettings(clamp_to_now=False)),
        "LAS, immediate": las(PaperSettings(sync=kernels.IMMEDIATE)),
        "LAS, per-row CHECK": las(PaperSettings(check=kernels.PER_ROW)),
        "LAS, sliding CHECK": las(PaperSettings(check=kernels.SLIDING)),
        OURS: ours(OursSettings()),
        "ours, clock after every row": ours(OursSettings(sync_every=1)),
        "ours, clock every 32 rows": ours(OursSettings(sync_every=32)),
        "ours, the paper's 4 x 55 sketch": ours(OursSettings(rows=4, columns=55)),
        KNOWING: ours(OursSettings(exact=True)),
    }


def _fewest_share(runs: Runs) -> float:
    shares = []
    for _, stream in streams(StreamSettings(), runs.associations, 1, runs.seed):
        time_ms = float(stream.arrivals_ms[-1]) + float(stream.costs_ms.max())
        fit = int(np.searchsorted(np.cumsum(np.sort(stream.costs_ms)), time_ms, side="right"))
        shares.append(1.0 - fit / len(stream.keys))
    return float(np.mean(shares))
