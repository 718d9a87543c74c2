"""Ours alone: how near the planners come to the optimum, and how long they take."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np

from jettison.lab.intervals import Samples, mean
from jettison.lab.reproduce.aurora.compare import STEP
from jettison.lab.reproduce.claims import Claim, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.workers import for_each
from jettison.lab.sim.network.engine import Planner, offered, random_arrivals
from jettison.lab.sim.network.generator import Shape, random_network
from jettison.lab.sim.network.roadmap import greedy_road_map, paper_road_map
from jettison.lab.sim.network.survival import utilities, utility
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.evaluate import drop_plan
from jettison.policies.network.optimum import Program, frontier

PLANNERS: Mapping[str, Callable[[DropModel], Planner]] = {
    "linear program (default)": frontier,
    "re-evaluated table": lambda model: greedy_road_map(model, step=STEP),
    "paper's table": lambda model: paper_road_map(model, step=STEP),
    "paper's table, to the letter": lambda model: paper_road_map(model, step=STEP, literal=True),
}
LOADS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
DELIVERED_LOADS = (0.8, 0.5, 0.25)
_ROWS = 4000.0
"""Rows of each input that are dropped one by one."""
_LARGE = Shape(queries=100, filters=720, unions=280)


def on_networks(measure: Callable[..., Samples], seed: int, splits: int, networks: int) -> tuple[Samples, Samples]:
    """Both figures that `measure`, of this module, finds on each of so many networks."""
    first = seed * 1000 + 600
    found = np.array(for_each(range(first, first + networks), partial(measure, splits=splits)))
    return found[:, 0], found[:, 1]


def gaps(seed: int, splits: int) -> Samples:
    """By planner and load: utility missing from the optimum, and loss beyond the least, both in percent."""
    model = drop_model(random_network(seed, splits=splits))
    program = Program(model)
    best = np.array([program.solve(share * model.full_load).utility for share in LOADS])
    planners = [make(model) for make in PLANNERS.values()]
    reached = np.array(
        [[utility(model, planner.at(share * model.full_load)) for share in LOADS] for planner in planners]
    )
    missing = 100.0 * (best - reached)
    return np.array([missing / best, missing / np.maximum(model.full_utility - best, 1e-9)])


def delivered(seed: int, splits: int) -> Samples:
    """By load, in percent of all utility, from rows that were dropped one by one in the simulator.

    What the default planner's drops deliver less what it foresaw, and what they deliver more than the paper's table.
    """
    graph = random_network(seed, splits=splits)
    model = drop_model(graph)
    arrivals = random_arrivals(graph, seed, mean_gap=1.0, until=_ROWS)
    wanted = {name: len(rows) for name, rows in offered(graph, arrivals).items()}

    def reached(survival: Vector) -> float:
        got = offered(graph, arrivals, drop_plan(model, survival))
        shares = {name: 100.0 * len(got[name]) / count if count else 100.0 for name, count in wanted.items()}
        return _percent([model.loss_tolerance[name].at(share) for name, share in shares.items()])

    ours, papers = frontier(model), paper_road_map(model, step=STEP)
    result = []
    for share in DELIVERED_LOADS:
        survival = ours.at(share * model.full_load)
        foreseen = _percent(utilities(model, survival).values())
        got = reached(survival)
        result.append((got - foreseen, got - reached(papers.at(share * model.full_load))))
    return np.array(result).T


def _percent(utilities: Collection[float]) -> float:
    return 100.0 * sum(utilities) / len(utilities)


def times(seed: int) -> tuple[float, float, int, int]:
    """CPU seconds to plan a network of 1,000 boxes and 100 outputs, milliseconds to look a plan up; boxes, units.

    CPU time, because this may run beside other work; both are done by one thread.
    """
    graph = random_network(seed * 1000 + 900, splits=60, shape=_LARGE)
    plan_s = []
    for _ in range(3):
        started = time.process_time()
        model = drop_model(graph)
        planner = frontier(model)
        plan_s.append(time.process_time() - started)
    lookup_s = []
    for share in np.linspace(0.1, 0.99, 50):
        started = time.perf_counter()
        survival = planner.at(share * model.full_load)
        lookup_s.append(time.perf_counter() - started)
        drop_plan(model, survival)
    return min(plan_s), 1e3 * float(np.median(lookup_s)), len(graph.boxes), model.units


def judged(splits: int, off: Samples, ahead: Samples, config: dict[str, object]) -> list[Claim]:
    """What `delivered` found, as claims: the planner's own promise, and that it is worth its program."""
    figures = {
        f"planner-foresight-{splits}": float(np.abs(off).max()),
        f"planner-ahead-{splits}": min(mean(column).lower for column in ahead.T),
    }
    return judge("aurora", figures, config)


def run(settings: RunSettings) -> Judged:
    """Compare the planners on random networks of the paper's size, and time the default one on a large network."""
    claims, rows = [], []
    networks = 30 if settings.quick else 100
    for splits, words in ((0, "without sharing"), (8, "with 8 shared streams")):
        settings.say(f"planners on {networks} networks {words}")
        missing, beyond = on_networks(gaps, settings.seed, splits, networks)
        config: dict[str, object] = {"networks": networks, "splits": splits, "seed": settings.seed}
        for row, name in enumerate(PLANNERS):
            figures = [f(found[:, row]) for found in (missing, beyond) for f in (np.mean, np.max)]
            rows.append([name, words, *(f"{float(figure):.2f}" for figure in figures)])
        off, ahead = on_networks(delivered, settings.seed, splits, networks)
        claims += judged(splits, off, ahead, config | {"loads": list(DELIVERED_LOADS), "rows": _ROWS})
    settings.say("planner on a network of 1,000 boxes")
    plan_s, lookup_ms, boxes, units = times(settings.seed)
    config = {"boxes": boxes, "outputs": _LARGE.queries, "units": units, "seed": settings.seed}
    claims += judge("aurora", {"planner-seconds": plan_s, "lookup-ms": lookup_ms}, config)
    header = ["planner", "networks", "utility missing, mean %", "worst %", "loss beyond the least, mean %", "worst %"]
    text = (
        f"Over {networks} random networks of the paper's size, at loads of {LOADS[-1]:g} to {LOADS[0]:g} of the full one, "
        "against the linear program solved at that load (for the default planner that is itself, solved ahead and looked "
        f"up). Tables have steps of {STEP:g}.\n\n" + table(header, rows)
    )
    return [Section("How near the planners come to the optimum", text)], claims
