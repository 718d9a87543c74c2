"""Help of commands that run one of many experiments."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class HelpWithTable(TyperCommand):
    """Help with the table of what there is to run, looked up when help is asked for: a command imports its part alone."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from jettison.lab.experiments import listing_of_benchmarks, listing_of_papers

        title, listing = {
            "bench": (", and what it measures", listing_of_benchmarks),
            "reproduce": (" (?: not measured)", listing_of_papers),
        }[str(self.name)]
        self.help = f"{self.help}\n\nHow long each takes, roughly, on two cores{title}:\n\n\b\n{listing()}\n"
        super().format_help(ctx, formatter)
