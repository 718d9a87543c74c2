"""Figure 4: four partitionings under global and local skew, for every combination of data and queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial

from matplotlib.figure import Figure

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import Section, table
from jettison.reproduce.sifter.trial import CHOSEN, FIRST, METHODS, RANDOM, Outcome, Setting
from jettison.reproduce.sifter.workload import Workload
from jettison.sifter.build import PARTITIONINGS

SKEWS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
COMBINATIONS: Mapping[str, Workload] = {
    "uniform data, skewed queries": Workload(data="uniform", query="skewed"),
    "skewed data, uniform queries": Workload(data="skewed", query="uniform"),
    "skewed data, skewed queries": Workload(data="skewed", query="skewed"),
    "uniform data, uniform queries": Workload(data="uniform", query="uniform"),
    "aligned normals": Workload(data="skewed", query="skewed", aligned=True),
}
PROPORTIONAL = ("uniform data, uniform queries", "aligned normals")

Sweeps = dict[str, dict[str, dict[float, Outcome]]]


def grid(*, truncated: bool = False, skews: tuple[float, ...] = SKEWS) -> dict[str, dict[str, dict[float, Setting]]]:
    """Settings by combination, by kind of skew (`"G"` or `"L"`), by its value."""
    found: dict[str, dict[str, dict[float, Setting]]] = {}
    for name, workload in COMBINATIONS.items():
        base = replace(workload, truncated=truncated)
        found[name] = {
            "G": {skew: Setting(replace(base, global_skew=skew)) for skew in skews},
            "L": {skew: Setting(replace(base, local_skew=skew)) for skew in skews},
        }
    return found


def looked_up(grid: Mapping[str, Mapping[str, Mapping[float, Setting]]], known: Mapping[Setting, Outcome]) -> Sweeps:
    """The same with outcomes in place of settings."""
    return {
        name: {kind: {skew: known[one] for skew, one in settings.items()} for kind, settings in kinds.items()}
        for name, kinds in grid.items()
    }


def sections(sweeps: Sweeps, title: str) -> list[Section]:
    """One table and one plot over both skews."""
    rows = [
        [
            name,
            f"{kind} = {skew:g}",
            *(f"{one.mean(method):.4f}" for method in METHODS),
            one.best_single,
            *(f"{100 * share:.1f} %" for share in (one.gain(), one.loss_cut(), one.empty_share)),
        ]
        for name, kinds in sweeps.items()
        for kind, outcomes in kinds.items()
        for skew, one in outcomes.items()
    ]
    header = ["workload", "skew", *METHODS, "best single", "gain of chosen", "loss cut", "empty queries"]
    return [Section(title, table(header, rows), _plot(sweeps))]


def _plot(sweeps: Sweeps) -> Figure:
    figure = Figure(figsize=(4 * len(sweeps), 6.5))
    for column, (name, kinds) in enumerate(sweeps.items()):
        for row, (kind, outcomes) in enumerate(kinds.items()):
            axes = figure.add_subplot(2, len(sweeps), row * len(sweeps) + column + 1)
            for method in METHODS:
                style = {RANDOM: "k:", CHOSEN: "k-", FIRST: "k--"}.get(method, "o-")
                axes.plot(list(outcomes), [one.mean(method) for one in outcomes.values()], style, label=method, ms=3)
            axes.set(title=name, xlabel=f"{'global' if kind == 'G' else 'local'} skew {kind}", ylabel="overall QoS")
    figure.axes[0].legend(fontsize=7)
    figure.tight_layout()
    return figure


def claims(sweeps: Sweeps, config: Mapping[str, object], known: Mapping[Setting, Outcome]) -> list[Claim]:
    """What the paper says of figure 4, and what the default choice promises at every setting of `known`."""
    everything = [one for kinds in sweeps.values() for outcomes in kinds.values() for one in outcomes.values()]
    skewed_queries, skewed_data, both = (list(sweeps.values())[place] for place in range(3))
    proportional = [one for name in PROPORTIONAL for kind in sweeps[name].values() for one in kind.values()]
    worst = max(known, key=lambda setting: known[setting].behind)
    claim = partial(Claim, config=config)
    return [
        claim(
            "fig4-beats-random",
            "smallest loss cut over all workloads and skews: sifters beat random dropping",
            "yes",
            min(one.loss_cut() for one in everything),
            at_least=0.0,
        ),
        claim(
            "fig4-no-single-best",
            "number of partitionings that are best somewhere",
            "none is best under all workloads",
            float(len({one.best_single for one in everything})),
            at_least=2.0,
        ),
        claim(
            "fig4-skewed-queries-global",
            "loss cut, skewed queries over uniform data, L = 4, smallest over G >= 2",
            "QoS 60 to 50 % above random",
            min(one.loss_cut() for skew, one in skewed_queries["G"].items() if skew >= 2),
            at_least=0.25,
        ),
        claim(
            "fig4-skewed-queries-local",
            "loss cut, skewed queries over uniform data, smallest over L >= 8",
            "QoS 35 to 65 % above random over L",
            min(one.loss_cut() for skew, one in skewed_queries["L"].items() if skew >= 8),
            at_least=0.50,
        ),
        claim(
            "fig4-qdpart-best",
            "skewed queries over uniform data: QoS by which QDPart is behind the best partitioning, largest over G >= 2",
            "QDPart is best",
            max(one.mean(one.best_single) - one.mean("qdpart") for g, one in skewed_queries["G"].items() if g >= 2),
            at_most=0.0,
        ),
        claim(
            "fig4-skewed-data-global",
            "loss cut, skewed data under uniform queries, smallest over G",
            "QoS 35 to 20 % above random",
            min(one.loss_cut() for one in skewed_data["G"].values()),
            at_least=0.15,
        ),
        claim(
            "fig4-skewed-data-local",
            "skewed data under uniform queries: gain at L = 1 less gain at L = 10",
            "gain falls from 40 to 2 %",
            skewed_data["L"][1.0].gain() - skewed_data["L"][10.0].gain(),
            at_least=0.2,
            config=dict(config)
            | {"gain_at_1": skewed_data["L"][1.0].gain(), "gain_at_10": skewed_data["L"][10.0].gain()},
        ),
        claim(
            "fig4-data-equidepth-best",
            "skewed data under uniform queries: QoS by which data equi-depth is behind the best, largest over G",
            "data equi-depth is best, QDPart next",
            max(one.mean(one.best_single) - one.mean("data") for one in skewed_data["G"].values()),
            at_most=0.0,
        ),
        claim(
            "fig4-both-skewed",
            "loss cut, both skewed, L = 4, smallest over G >= 2",
            "higher than for skewed data alone",
            min(one.loss_cut() for skew, one in both["G"].items() if skew >= 2),
            at_least=0.25,
            config=dict(config) | {"at_G_1": both["G"][1.0].loss_cut()},
        ),
        claim(
            "fig4-proportional",
            "proportional densities: largest gain over both kinds and all skews",
            "around 6 %",
            max(one.gain() for one in proportional),
            at_most=0.08,
        ),
        claim(
            "fig4-proportional-loss",
            "proportional densities: largest loss cut over both kinds and all skews",
            "",
            max(one.loss_cut() for one in proportional),
            at_most=0.08,
        ),
        claim(
            "choice-any-setting",
            "QoS by which the default choice is behind the best partitioning, largest over all settings of all figures",
            "",
            known[worst].behind,
            at_most=0.01,
            config=dict(config) | {"worst_setting": asdict(worst), "best_there": known[worst].best_single},
        ),
        claim(
            "choice-each-combination",
            "the same of figure 4, averaged over the settings of a combination, against its best single one; largest",
            "",
            max(_behind_in_combination(kinds) for kinds in sweeps.values()),
            at_most=0.0,
        ),
    ]


def _behind_in_combination(kinds: Mapping[str, Mapping[float, Outcome]]) -> float:
    outcomes = [one for sweeps in kinds.values() for one in sweeps.values()]
    means = {method: sum(one.mean(method) for one in outcomes) / len(outcomes) for method in METHODS}
    return max(means[name] for name in PARTITIONINGS) - means[CHOSEN]
