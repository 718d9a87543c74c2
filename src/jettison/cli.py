"""The command line: a function for each command of `jettison`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from jettison import __version__, extras, java
from jettison.core import durations
from jettison.errors import JettisonError, refuse

app = typer.Typer(
    help="Load shedding for Spark Structured Streaming.", no_args_is_help=True, pretty_exceptions_enable=False
)

_PHASES = "12,42,12"
_WARM, _COLD = "jettison-demo.png", "jettison-demo-cold.png"


class _HelpWithTable(TyperCommand):
    """Help with the table of what there is to run, looked up when help is asked for: a command imports its part alone."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from jettison.lab.experiments import listing_of_benchmarks, listing_of_papers

        title, listing = {
            "bench": (", and what it measures", listing_of_benchmarks),
            "reproduce": (" (?: not measured)", listing_of_papers),
        }[str(self.name)]
        self.help = f"{self.help}\n\nHow long each takes, roughly, on two cores{title}:\n\n\b\n{listing()}\n"
        super().format_help(ctx, formatter)


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
        typer.Option(help=f"Write the plot to this file (.png, .svg or .pdf); if not given, {_WARM} or {_COLD}."),
    ] = None,
    latency: Annotated[
        str, typer.Option(metavar="DURATION", help="Latency bound: seconds, or with a unit as in '10 seconds'.")
    ] = "10",
    seconds: Annotated[str, typer.Option(help="Length of the three phases in seconds.")] = _PHASES,
    cold: Annotated[
        bool, typer.Option("--cold", help="Run in fresh processes and report their first minute; about 5 minutes.")
    ] = False,
) -> None:
    """An overloaded stream of taxi rides on local Spark, plain and then shed, live, with a report: about 4 minutes."""
    picture = picture or Path(_COLD if cold else _WARM)
    bound_s, lengths = _seconds("--latency", latency), _three_lengths(seconds)
    _require_writable("--json", json)
    _require_picture(picture, (".png", ".pdf", ".svg"))
    extras.require("pyspark", "matplotlib", where="`jettison demo`")
    java.require_java()
    from jettison.lab.demo.command import run_demo

    run_demo(Console(), bound_s=bound_s, seconds=lengths, json_path=json, picture_path=picture, cold=cold)


@app.command(cls=_HelpWithTable)
def bench(
    name: Annotated[str | None, typer.Argument(help="One benchmark.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them but prove: 1 to 2 hours.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", "--pairs", "--repeat", help="Runs of each side, alternating.")
    ] = 5,
    only: Annotated[
        str | None,
        typer.Option("--only", "--workload", metavar="CASE", help="One case of a benchmark that has several."),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N", help="For faults: how many runs, or from which seed to which, as in 40:60.")
    ] = "100",
    rivals: Annotated[
        str, typer.Option(metavar="A,B", help="For prove: whom to run beside Jettison; all of them, unless given.")
    ] = "",
    seconds: Annotated[float, typer.Option(help="For prove: length of a run.")] = 60.0,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Measure the ratios of this file again, and fail where one is worse by 10 %."
        ),
    ] = None,
) -> None:
    """Ratios against plain Spark and the baselines, measured side by side in one run."""
    _require_writable("--json", json)
    if check is not None:
        from jettison.lab.bench.command import run_check
        from jettison.lab.bench.result import failed

        if failed(run_check(Console(), check, name=name, only=only)):
            raise typer.Exit(1)
        return
    if every == (name is not None):
        got = "both" if every else "neither"
        refuse("the name of a benchmark, or --all", got, hint="`jettison bench --help` lists them, with their times")
    from jettison.lab.bench.command import run_bench
    from jettison.lab.bench.result import failed

    chosen = _seeds(seeds)
    named = tuple(one.strip() for one in rivals.split(",") if one.strip())
    results = run_bench(
        Console(),
        name=name,
        repetitions=repetitions,
        json_path=json,
        only=only,
        seeds=chosen,
        rivals=named,
        seconds=seconds,
    )
    if failed(results):
        raise typer.Exit(1)


@app.command(cls=_HelpWithTable)
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
        from jettison.policies.network.document import schema

        print(schema())
        raise typer.Exit


@app.command()
def plan(
    pipeline: Annotated[Path, typer.Argument(help="Pipeline file, YAML or JSON.")],
    picture: Annotated[Path | None, typer.Option(help="Draw the network to this file (.svg or .png).")] = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", callback=_say_schema, is_eager=True, help="Print the JSON schema of such files, for editors."
        ),
    ] = False,
) -> None:
    """Show a pipeline's drop locations, load coefficients and road map; run nothing."""
    from jettison.policies.network.document import load
    from jettison.policies.network.picture import describe, draw

    given = load(pipeline)
    if picture is not None:
        _require_picture(picture, (".svg", ".png"))
        extras.require("matplotlib", where="`jettison plan --picture`")
        draw(given.graph, picture, semantic=given.semantic)
    print(describe(given.graph, semantic=given.semantic))
    print(
        "\nWhich boxes need all rows is told from the words of their SQL; `jettison run` reads Spark's own plan of it."
    )


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(help="Pipeline file, YAML or JSON.")],
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and count, but drop nothing.")] = False,
    seconds: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Stop after so many seconds, or with a unit as in '2 minutes'."),
    ] = None,
) -> None:
    """Run a pipeline of Spark SQL boxes under its latency bound, until it is stopped."""
    from jettison.policies.network.document import load, require_runnable

    given, length_s = load(pipeline), None if seconds is None else _seconds("--seconds", seconds)
    require_runnable(given)
    extras.require("pyspark", where="`jettison run`")
    java.require_java()
    from jettison.spark.pipeline import run_pipeline

    run_pipeline(given, master=master, dry_run=dry_run, seconds=length_s)


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what there is to settle, and settle nothing.")
    ] = False,
    rows_per_s: Annotated[float | None, typer.Option(help="Read no more rows a second, on average.")] = None,
    hours: Annotated[str | None, typer.Option(metavar="FROM-TO", help="Work in these hours only: 22-6.")] = None,
    beside_shedding: Annotated[
        bool, typer.Option("--beside-shedding", help="Go on while the live query sheds.")
    ] = False,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> None:
    """Exact answers, later, for all windows that rows were dropped from."""
    within = None if hours is None else _hours(hours)
    extras.require("pyspark", where="`jettison reconcile`")
    java.require_java()
    from jettison.settle.settle_command import named_query, run_reconcile
    from jettison.spark.session import local_session

    made, sources = named_query(query, source or [], pipeline, output)

    polite = {"rows_per_s": rows_per_s, "hours": within, "beside_shedding": beside_shedding}
    session = local_session("jettison-reconcile", master=master)
    run_reconcile(Console(), session, checkpoint, made, to, sources, dry_run=dry_run, **polite)


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
    run_top(console, checkpoint, every_s=_seconds("--follow", follow or "2") if live else None)


@app.command()
def advise(checkpoint: Annotated[str, typer.Argument(help="Checkpoint location of a query that has run.")]) -> None:
    """What a query's last hour, dry or not, says: which bounds can be held, what they cost, what to set at the source."""
    from jettison.core import storage
    from jettison.runtime.advice import advice
    from jettison.runtime.set_command import require_known

    home = storage.home(checkpoint)
    require_known(home)
    for sentence in advice(home):
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

    bound_s = None if latency is None else _seconds("--latency", latency)
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
    _require_writable("--html", html)
    extras.require("plotly", where="`jettison report`")
    from jettison.page.command import run_report

    run_report(Console(), checkpoint, html)


def _seconds(option: str, text: str) -> float:
    """A duration as typed: a number of seconds, or a text with a unit."""
    try:
        given: durations.Duration = float(text)
    except ValueError:
        given = text
    return durations.seconds(given, name=option)


def _hours(text: str) -> tuple[int, int]:
    """Two full hours of the day."""
    first, _, end = text.partition("-")
    if not (first.isdigit() and end.isdigit() and int(first) != int(end) and max(int(first), int(end)) <= 24):
        refuse(
            "--hours must be two different hours of the day", repr(text), hint="write 22-6 for ten at night until six"
        )
    return int(first), int(end)


def _three_lengths(text: str) -> list[float]:
    try:
        lengths = [float(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if len(lengths) != 3 or not all(math.isfinite(length) and length > 0 for length in lengths):
        refuse("--seconds must be three positive numbers", repr(text), hint=f"write {_PHASES}")
    return lengths


def _seeds(text: str) -> range:
    """So many seeds from 0 on, or those between two numbers.

    >>> _seeds("3"), _seeds("40:60")
    (range(0, 3), range(40, 60))
    """
    first, _, stop = text.rpartition(":")
    try:
        found = range(int(first or 0), int(stop))
    except ValueError:
        found = range(0)
    if not found or found.start < 0:
        refuse("--seeds must be a number, or two with a colon between them", repr(text), hint="try 100, or 40:60")
    return found


def _require_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before minutes of work rather than after them."""
    if path is None:
        return
    if not path.parent.is_dir():
        hint = f"make the folder first: mkdir -p {path.parent}"
        refuse(f"{option} must name a file in a folder that exists", str(path), hint=hint)
    if path.is_dir():
        refuse(f"{option} must name a file", f"the folder {path}", hint="name a file in it")
    new = not path.exists()
    try:
        path.open("a").close()
    except OSError as error:
        hint = "name a file in a folder of your own"
        refuse(f"{option} must name a file that can be written", f"{path} ({error.strerror})", hint=hint, cause=error)
    if new:
        path.resolve().unlink()


def _require_picture(path: Path, kinds: Sequence[str]) -> None:
    _require_writable("--picture", path)
    if path.suffix not in kinds:
        hint = f"for example {path.with_suffix(kinds[0])}"
        refuse(f"--picture must end in {' or '.join(kinds)}", str(path), hint=hint)


def main() -> None:
    """Run the command line; an error raised on purpose is one sentence, not a traceback."""
    try:
        app()
    except JettisonError as error:
        print(f"jettison: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
