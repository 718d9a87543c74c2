"""Load Shedding in a Data Stream Manager (VLDB 2003): figures 9 to 12 and the planners behind them."""

from jettison import java
from jettison.reproduce.aurora import admission_order, planners, sharing, skew, utility_loss
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import Report, RunSettings, Section


def run(settings: RunSettings) -> Report:
    """All experiments of the paper, and those of our own on its planners."""
    sections: list[Section] = []
    claims: list[Claim] = []
    for experiment in (utility_loss, skew, sharing, planners, admission_order):
        more_sections, more_claims = experiment.run(settings)
        sections += more_sections
        claims += more_claims
    if java.java_problem() is None:
        from jettison.reproduce.aurora import live  # the only part that needs Java and pyspark

        more_sections, more_claims = live.run(settings)
        sections += more_sections
        claims += more_claims
    else:
        settings.say("live: left out, because there is no Java")
    return Report(
        paper="aurora",
        title="Load shedding in a data stream manager",
        command=settings.command("aurora"),
        sections=sections,
        claims=claims,
    )
