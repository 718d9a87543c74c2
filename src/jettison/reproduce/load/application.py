"""Figure 11 in the simulator: tweets that cost 25, 5 or 1 ms for each medium, politician or other that they mention."""

from __future__ import annotations

from jettison.reproduce.claims import Claim
from jettison.reproduce.load.phases import windows
from jettison.reproduce.load.plots import series_plot
from jettison.reproduce.load.sweep import FULL_KNOWLEDGE, LAS, OURS, STRAW_MAN
from jettison.reproduce.load.tweets import real_tweets, tweet_like_stream, tweet_stream
from jettison.reproduce.report import Section, table
from jettison.sim.load.algorithms import OursSettings, PaperSettings, full_knowledge, las, ours, straw_man
from jettison.sim.load.workload import Stream

BOUND_MS = 32.0


ROWS = 500_000
"""As in the paper. Straw-Man's wait grows with the stream, so a shorter one would flatter it."""


def run_application(seed: int) -> tuple[list[Section], list[Claim]]:
    """The tweet-like stream always, the real one where it is at hand."""
    cases = {"tweet-like": tweet_like_stream(ROWS, seed)}
    if (path := real_tweets()) is not None:
        cases["real tweets"] = tweet_stream(path, ROWS)
    sections, claims = [], []
    for name, stream in cases.items():
        section, judged = _run(name, stream, seed)
        sections.append(section)
        claims += judged
    return sections, claims


def _run(source: str, stream: Stream, seed: int) -> tuple[Section, list[Claim]]:
    paper = PaperSettings(bound_ms=BOUND_MS)
    algorithms = {
        LAS: las(paper),
        OURS: ours(OursSettings(bound_ms=BOUND_MS)),
        STRAW_MAN: straw_man(paper),
        FULL_KNOWLEDGE: full_knowledge(paper),
    }
    outcomes = {name: algorithm(stream, seed) for name, algorithm in algorithms.items()}
    waits = {name: outcome.mean_wait_ms for name, outcome in outcomes.items()}
    drops = {name: outcome.drop_share for name, outcome in outcomes.items()}
    known = waits[FULL_KNOWLEDGE]
    config = {"rows": len(stream.keys), "source": source, "seed": seed, "mean_cost_ms": stream.mean_cost_ms}
    mark = "fig11-" + source.replace(" ", "-")
    claims = [
        Claim(f"{mark}-las", f"LAS is close to Full Knowledge ({source}): wait over its wait",
              "extremely close", waits[LAS] / known, at_most=1.1, config=config),
        Claim(f"{mark}-straw-man", f"Straw-Man waits at least ten times longer ({source}): wait over Full Knowledge's",
              "an order of magnitude", waits[STRAW_MAN] / known, at_least=10.0, config=config),
        Claim(f"{mark}-straw-man-50", f"Straw-Man waits 50 times longer or more ({source})",
              "", waits[STRAW_MAN] / known, at_least=50.0, config=config),
        Claim(f"{mark}-ours", f"ours is at most at 1.5 times Full Knowledge's wait ({source})",
              "", waits[OURS] / known, at_most=1.5, config=config),
        Claim(f"{mark}-ours-drops", f"ours drops no more rows than Full Knowledge ({source}): ratio",
              "", drops[OURS] / max(drops[FULL_KNOWLEDGE], 1e-9), at_most=1.0, config=config),
    ]  # fmt: skip
    size = max(1, len(stream.keys) // 40)
    series = {name: windows(outcome, size) for name, outcome in outcomes.items()}
    plot = series_plot(
        [float(size * (number + 1)) for number in range(len(series[LAS][0]))],
        {name: values[0].tolist() for name, values in series.items()},
        {name: values[1].tolist() for name, values in series.items()},
        BOUND_MS,
        "rows",
    )
    text = table(
        ["algorithm", "mean wait ms", "over Full Knowledge", "dropped"],
        [[name, waits[name], waits[name] / known, drops[name]] for name in outcomes],
    )
    return Section(f"Figure 11: the application, {source}, simulated", text, plot), claims
