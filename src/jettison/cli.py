"""The command line: `jettison demo`, `bench`, `reproduce`, `plan`, `run` and `top`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jettison import durations, java
from jettison.errors import InvalidSetting, JettisonError, explain

app = typer.Typer(
    help="Load shedding for Spark Structured Streaming.", no_args_is_help=True, pretty_exceptions_enable=False
)


@app.callback()
def _commands() -> None:
    """Load shedding for Spark Structured Streaming."""


@app.command()
def demo(
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file.")] = None,
    picture: Annotated[Path, typer.Option(help="Write the plot to this file (PNG).")] = Path("jettison-demo.png"),
    latency: Annotated[float, typer.Option(help="Latency bound in seconds.")] = 10.0,
    seconds: Annotated[str, typer.Option(help="Length of the three phases in seconds.")] = "12,42,12",
) -> None:
    """An overloaded stream of taxi rides on local Spark, plain and then shed, live, with a report."""
    java.require_java()
    from jettison.demo.command import run_demo  # needs pyspark, which other commands may not

    lengths, _ = _three_lengths(seconds), durations.seconds(latency, name="--latency")
    run_demo(Console(), bound_s=latency, seconds=lengths, json_path=json, picture_path=picture)


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(help="One benchmark; all of them if not given.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    repetitions: Annotated[int, typer.Option(help="Runs of each side, alternating.")] = 5,
) -> None:
    """Ratios against plain Spark and the baselines, measured side by side in one run."""
    java.require_java()
    from jettison.bench.command import run_bench

    run_bench(Console(), name=name, repetitions=repetitions, json_path=json)


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="Short name of the paper.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions; every claim is still checked.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the report and its plots.")] = None,
    seed: Annotated[int, typer.Option(help="All randomness follows from it.")] = 1,
) -> None:
    """One paper's experiments: plots, REPORT.md, and claims.json with a verdict on every claim."""
    from jettison.reproduce.command import run_reproduce

    run_reproduce(Console(), paper, quick=quick, seed=seed, out=out)


@app.command()
def plan(
    pipeline: Annotated[Path, typer.Argument(help="Pipeline file, YAML or JSON.")],
    picture: Annotated[Path | None, typer.Option(help="Draw the network to this file (.svg or .png).")] = None,
) -> None:
    """Show a pipeline's drop locations, load coefficients and road map; run nothing."""
    from jettison.network.document import load
    from jettison.network.picture import describe, draw

    given = load(pipeline)
    if picture is not None:
        draw(given.graph, picture, semantic=given.semantic)
    print(describe(given.graph, semantic=given.semantic))


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(help="Pipeline file, YAML or JSON.")],
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and count, but drop nothing.")] = False,
    seconds: Annotated[float | None, typer.Option(help="Stop after this long; not given, run until stopped.")] = None,
) -> None:
    """Run a pipeline of Spark SQL boxes under its latency bound."""
    java.require_java()
    from jettison.network.document import load
    from jettison.spark.pipeline import run_pipeline

    run_pipeline(load(pipeline), master=master, dry_run=dry_run, seconds=seconds)


@app.command()
def top(
    checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query.")],
    follow: Annotated[float | None, typer.Option(help="Look again every so many seconds, until stopped.")] = None,
) -> None:
    """How a query and the functions in it are doing: rows kept, latency, the costliest keys."""
    from jettison.top import run_top

    run_top(Console(), checkpoint, every_s=None if follow is None else durations.seconds(follow, name="--follow"))


def _three_lengths(text: str) -> list[float]:
    try:
        lengths = [float(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if len(lengths) != 3 or min(lengths) <= 0:
        raise InvalidSetting(explain("--seconds must be three positive numbers", repr(text), hint="write 12,42,12"))
    return lengths


def main() -> None:
    """Run the command line; an error raised on purpose is one sentence, not a traceback."""
    try:
        app()
    except JettisonError as error:
        print(f"jettison: {error}", file=sys.stderr)
        sys.exit(2)
