"""Load-aware shedding (Rivetti, Anceaume, Busnel, Querzoni, Sericola, 2016): its experiments and its claims.

`jettison reproduce load` runs everything; `python -m jettison.reproduce.load NAME...` runs some of the experiments.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from jettison import java
from jettison.errors import InvalidSetting, Unsupported, did_you_mean, explain
from jettison.reproduce.claims import Claim, noted, save
from jettison.reproduce.load.parts import ON_SPARK, PARTS
from jettison.reproduce.report import Report, RunSettings, Section
from jettison.sim.load.compiled import HAVE_COMPILER

MOVED = {
    "fig4-straw-man": "the measure: 90 % was judged apart for a while",
    "fig7-span": "the measure: standard deviation for a while",
    "fig7-las-drops": "the bar, 0.99 at first, and the measure: with three standard errors",
    "fig9-": "the measure: median of 9 streams at first",
    "fig11-tweet-like-las": "the bar: 1.5 at first",
    "fig11-real-tweets-las": "the bar: 1.5 at first",
    "ours-sketch-enough": "the bar",
    "decision-and-update": "the measure: keys that were hashed already at first",
    "spark-overhead": "how slices are sized and batches alternate",
}
"""What was settled after a look at figures, by the beginning of a claim's id."""


def run(settings: RunSettings, only: Sequence[str] = ()) -> Report:
    """Figures 4 to 9 and 11 in the simulator, what was corrected and added, and figures 10 and 11 on Spark."""
    if unknown := [name for name in only if name not in PARTS]:
        raise InvalidSetting(
            explain(
                f"experiments out of {', '.join(PARTS)}",
                ", ".join(unknown),
                hint=did_you_mean(unknown[0], PARTS, otherwise="name none to run all"),
            )
        )
    names = [name for name in PARTS if not only or name in only]
    if not HAVE_COMPILER:
        raise Unsupported(
            explain(
                "numba, which compiles the simulator",
                "none",
                where="`jettison reproduce load`",
                hint="install jettison[reproduce]",
            )
        )
    if set(names) & ON_SPARK:
        java.require_java()  # now, and not after an hour of simulation
    sections: list[Section] = []
    claims: list[Claim] = []
    for name in names:
        started = time.monotonic()
        more, judged = PARTS[name](settings)
        sections += more
        claims += noted(judged, MOVED)
        save(claims, settings.out / "claims.json")  # what is known so far, should the run be cut short
        held = sum(claim.holds for claim in judged)
        settings.say(f"{name}: {held} of {len(judged)} claims hold, {time.monotonic() - started:.0f} s")
    command = settings.command("load")
    return Report("load", "Load-aware shedding", command, sections, claims)
