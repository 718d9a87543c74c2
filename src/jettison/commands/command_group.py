"""Commands that end in good order when Ctrl-C is typed."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from jettison.core import interruption


class Commands(TyperGroup):
    """Commands that end with one line and status 130 when Ctrl-C is typed, with all processes that they started."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            if not (isinstance(error, KeyboardInterrupt) or interruption.was_asked()):
                raise
            interruption.end_all()
            interruption.say()
            raise typer.Exit(interruption.STATUS) from None
