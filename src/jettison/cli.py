"""The command line: a function for each command of `jettison`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from jettison import __version__, extras, java
from jettison.commands import option_values
from jettison.commands.command_group import Commands
from jettison.commands.help_table import HelpWithTable
from jettison.core import interruption
from jettison.errors import JettisonError, refuse

app = typer.Typer(
    cls=Commands,
    help="Load shedding for Spark Structured Streaming.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_RUNS = "Runs of each side, alternating."
_SEEDS = "For faults: how many runs, or from which seed to which, as in 40:60."
_PHASES, _LOADS = "12,42,12", "0.5,3,0.5"
_PICTURE = "jettison-demo"


def _say_version(asked: bool) -> None:
    if asked:
        print(f"jettison {__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Load shedding for Spark Structured Streaming."""


@app.command()
def demo(
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help=f"Write the plot to this file (.png, .svg or .pdf); if not given, {_PICTURE}[-kafka][-cold].png."
        ),
    ] = None,
    latency: Annotated[
        str, typer.Option(metavar="DURATION", help="Latency bound: seconds, or with a unit as in '10 seconds'.")
    ] = "10",
    seconds: Annotated[str, typer.Option(help="Length of the three phases in seconds.")] = _PHASES,
    loads: Annotated[str, typer.Option(help="Arrival rates of the phases, in capacities of the plain query.")] = _LOADS,
    capacity_known: Annotated[
        bool, typer.Option("--capacity-known", help="Tell the guard the capacity that was measured.")
    ] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="Run in fresh processes and report their first minute; about 5 minutes.")
    ] = False,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Let the rides arrive at a Kafka broker, whose jars Maven fetches once.")
    ] = False,
) -> None:
    """An overloaded stream of taxi rides on local Spark, plain and then shed, live, with a report: about 4 minutes."""
    picture = picture or Path(f"{_PICTURE}{'-kafka' * kafka}{'-cold' * cold}.png")
    bound_s, lengths = option_values.seconds("--latency", latency), option_values.three("--seconds", seconds, _PHASES)
    rates = option_values.three("--loads", loads, _LOADS)
    option_values.require_writable("--json", json)
    option_values.require_picture(picture, (".png", ".pdf", ".svg"))
    extras.require("pyspark", "matplotlib", where="`jettison demo`")
    java.require_java()
    from jettison.lab.demo.command import run_demo

    asked: dict[str, Any] = {"json_path": json, "picture_path": picture, "cold": cold, "kafka": kafka}
    run_demo(Console(), bound_s=bound_s, seconds=lengths, loads=rates, capacity_known=capacity_known, **asked)


@app.command(cls=HelpWithTable)
def bench(
    name: Annotated[str | None, typer.Argument(help="One benchmark.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them but prove: 1 to 2 hours.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    repetitions: Annotated[
        int | None,
        typer.Option("--repetitions", "--pairs", "--repeat", help=_RUNS, show_default="5; 2 a round with --check"),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", "--workload", metavar="CASE", help="One case of a benchmark that has several."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="N", help=_SEEDS, show_default="100")] = None,
    rivals: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="For prove: whom to run beside Jettison; all of them, unless given."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="For prove: length of a run.", show_default="60")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="For prove: rounds over all workloads until so many minutes are over.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="For prove: go on with the runs in the --json file.")
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Measure the ratios of this file again, and fail where one is worse by 10 %."
        ),
    ] = None,
) -> None:
    """Ratios against plain Spark and the baselines, measured side by side in one run."""
    option_values.require_writable("--json", json)
    asked: dict[str, Any] = {
        "name": name,
        "json_path": json,
        "repetitions": repetitions,
        "only": only,
        "seeds": option_values.seeds(seeds),
        "rivals": option_values.names(rivals),
        "seconds": seconds,
        "minutes": minutes,
        "resume": resume,
    }
    if check is None and every == (name is not None):
        got = "both" if every else "neither"
        refuse("the name of a benchmark, or --all", got, hint="`jettison bench --help` lists them, with their times")
    from jettison.lab.bench.command import run_bench, run_check
    from jettison.lab.bench.result import failed

    if failed(run_bench(Console(), **asked) if check is None else run_check(Console(), check, **asked)):
        raise typer.Exit(1)


@app.command(cls=HelpWithTable)
def reproduce(
    paper: Annotated[str, typer.Argument(help="aurora, concept, load, sifter or window.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions; every claim is still checked.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report and its plots.", show_default="reproduce-PAPER")
    ] = None,
    seed: Annotated[int, typer.Option(help="All randomness follows from it.")] = 1,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="One of its experiments; may be given several times.")
    ] = None,
) -> None:
    """One paper's experiments: plots, REPORT.md, and claims.json with a verdict on every claim."""
    from jettison.lab.reproduce.command import run_reproduce

    run_reproduce(Console(), paper, quick=quick, seed=seed, out=out, only=only or ())


def _say_schema(asked: bool) -> None:
    if asked:
        from jettison.pipeline.document import schema

        print(schema())
        raise typer.Exit


@app.command()
def plan(
    pipeline: Annotated[Path, typer.Argument(help="Pipeline file, YAML or JSON.")],
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", callback=_say_schema, is_eager=True, help="Print the JSON schema of such files, for editors."
        ),
    ] = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure first what the boxes cost, on rows of the sources.")
    ] = False,
    master: Annotated[str | None, typer.Option(help="For --calibrate: Spark master.", show_default="local[*]")] = None,
) -> None:
    """Show what a pipeline would run: sources, drop points, policy, answers and, of networks, the road map."""
    from jettison.pipeline.costs import known, reached
    from jettison.pipeline.document import load
    from jettison.pipeline.plan_text import told

    if master is not None and not calibrate:
        refuse("--master needs --calibrate", master, hint="without it nothing is run: leave --master out")
    given = load(pipeline)
    if calibrate:
        extras.require("pyspark", where="`jettison plan --calibrate`")
        java.require_java()
        from jettison.spark.pipeline_command import calibrated

        calibrated(Console(), given, master=master or "local[*]")
    print(told(known(given), reached(given)))


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(help="Pipeline file, YAML or JSON.")],
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and count, but drop nothing.")] = False,
    seconds: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Stop after so many seconds, or with a unit as in '2 minutes'."),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="Take what is there, and end.")] = False,
) -> None:
    """Run a pipeline of Spark SQL under its latency bound, until it is stopped."""
    from jettison.pipeline.document import load, require_runnable

    given, length_s = load(pipeline), None if seconds is None else option_values.seconds("--seconds", seconds)
    require_runnable(given)
    extras.require("pyspark", where="`jettison run`")
    java.require_java()
    from jettison.spark.pipeline_command import run_pipeline

    run_pipeline(Console(), given, master=master, dry_run=dry_run, seconds=length_s, drain=drain)


@app.command()
def reconcile(
    checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query that has shed rows.")],
    to: Annotated[str, typer.Option(metavar="PATH", help="Folder for the exact answers, as Parquet.")],
    query: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Makes answers of rows, as it does of guarded ones.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Gives a reader the source's format, schema and options; once for each of the query's sources.",
        ),
    ] = None,
    pipeline: Annotated[
        Path | None, typer.Option(help="The file that `jettison run` runs, instead of --query and --source.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="Which of the pipeline's outputs, if it has several.")] = None,
    merge: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Also put them in the place of the approximate ones in this Delta table, path or name.",
        ),
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="No row comes later than the watermark allows: then each row is read once."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what there is to settle, and settle nothing.")
    ] = False,
    rows_per_s: Annotated[float | None, typer.Option(min=1, help="Read no more rows a second, on average.")] = None,
    hours: Annotated[str | None, typer.Option(metavar="FROM-TO", help="Work in these hours only: 22-6.")] = None,
    beside_shedding: Annotated[
        bool, typer.Option("--beside-shedding", help="Go on while the live query sheds.")
    ] = False,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> None:
    """Exact answers, later, for all windows that rows were dropped from."""
    within = None if hours is None else option_values.hours(hours)
    extras.require("pyspark", where="`jettison reconcile`")
    java.require_java()
    from jettison.pipeline.document import load
    from jettison.pipeline.options import expanded
    from jettison.settle.settle_command import named_query, run_reconcile
    from jettison.spark.session import local_session

    made, sources = named_query(query, source or [], pipeline, output)
    settings = None if pipeline is None else expanded(load(pipeline).spark, where="spark")
    polite = {"rows_per_s": rows_per_s, "hours": within, "beside_shedding": beside_shedding}
    session = local_session("jettison-reconcile", master=master, settings=settings)
    asked = {"merge": merge, "in_order": in_order, "dry_run": dry_run}
    run_reconcile(Console(), session, checkpoint, made, to, sources, **asked, **polite)


@app.command()
def audit(
    checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query whose windows are settled.")],
    answers: Annotated[str, typer.Option(metavar="PATH", help="Where the live query writes its answers, as Parquet.")],
    key: Annotated[
        list[str] | None,
        typer.Option(help="Column that tells answers of a window apart; by default all without bounds."),
    ] = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> None:
    """Hold every bound that a query gave against the settled truth."""
    from jettison.core import storage

    storage.known_home(checkpoint)
    extras.require("pyspark", where="`jettison audit`")
    java.require_java()
    from jettison.settle.settle_command import run_audit
    from jettison.spark.session import local_session

    run_audit(Console(), local_session("jettison-audit", master=master), checkpoint, answers, key or ())


@app.command()
def top(
    checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query.")],
    follow: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Look again every so often: seconds, or '2 minutes'.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once, as where there is no terminal.")] = False,
) -> None:
    """How a query and the functions in it are doing, kept up to date until q is typed: rows, latency, causes, keys."""
    from jettison.page.command import run_top

    console = Console()
    live = not once and (follow is not None or (console.is_terminal and sys.stdin.isatty()))
    run_top(console, checkpoint, every_s=option_values.seconds("--follow", follow or "2") if live else None)


@app.command()
def advise(checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query that has run.")]) -> None:
    """What a query's last hour, dry or not, says: which bounds can be held, what they cost, what to set at the source."""
    from jettison.core import storage
    from jettison.runtime.advice import advice

    for sentence in advice(storage.known_home(checkpoint)):
        Console().print(sentence, markup=False, highlight=False, soft_wrap=True)


@app.command("set")
def set_(
    checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query.")],
    latency: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Hold this bound: seconds, or '5 seconds'.")
    ] = None,
    keep_everything: Annotated[
        bool, typer.Option("--keep-everything", help="Drop nothing, whatever the load.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Drop nothing, but go on deciding what would be.")] = False,
    protect: Annotated[
        list[str] | None,
        typer.Option(metavar="SQL", help="Drop no row that weighs as much as this predicate of PriorityDrop, or more."),
    ] = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help="End one of these: latency, keep-everything, dry-run, protect; or all."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the ledger and whoever looks at it.")] = "",
) -> None:
    """Change a running query, or the next run of one, until it is cleared; without options, show what is set."""
    from jettison.runtime.set_command import run_set

    bound_s = None if latency is None else option_values.seconds("--latency", latency)
    run_set(
        Console(),
        checkpoint,
        bound_s=bound_s,
        keep_everything=keep_everything,
        dry_run=dry_run,
        protect=protect or (),
        clear=clear or (),
        reason=reason,
    )


@app.command()
def dashboard(
    checkpoint: Annotated[list[str], typer.Argument(help="Checkpoint locations of one query or several.")],
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine's own are open to all.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any that is free.")] = 8765,
) -> None:
    """A live page of queries, running or ended; and under /metrics their figures for Prometheus. It steers nothing."""
    extras.require("plotly", where="`jettison dashboard`")
    from jettison.page.command import run_dashboard

    run_dashboard(Console(), checkpoint, host=host, port=port)


@app.command()
def report(
    checkpoint: Annotated[list[str], typer.Argument(help="Checkpoint locations of one query or several.")],
    html: Annotated[Path, typer.Option(help="File to write: a page with its data inside, to send to somebody.")],
) -> None:
    """The page of queries as they are now, in one file that needs no server and no network."""
    option_values.require_writable("--html", html)
    extras.require("plotly", where="`jettison report`")
    from jettison.page.command import run_report

    run_report(Console(), checkpoint, html)


def main() -> None:
    """Run the command line; an error raised on purpose is one sentence, not a traceback."""
    try:
        with interruption.watched():
            app()
    except JettisonError as error:
        print(f"jettison: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
