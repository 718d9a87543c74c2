"""A bar that says how long a command still takes, from what its parts have taken before on two cores."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

_UNKNOWN_S = 120.0


def seconds_of(length: str) -> float | None:
    """The seconds that a text like those in `experiments.py` stands for, the middle of a range.

    >>> seconds_of("45 to 60 min"), seconds_of("under 1 min"), seconds_of("")
    (3150.0, 60.0, None)
    """
    minutes = [float(number) for number in re.findall(r"\d+", length)]
    return 60.0 * sum(minutes) / len(minutes) if minutes else None


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        if task.fields["unknown"]:
            rest_s = task.fields["rest_s"]
            left = f"at least {words(rest_s)} left" if rest_s else "nobody knows how much longer"
            return Text(f"{words(task.elapsed or 0.0)} so far, {left}")
        left = task.fields["part_s"] - (time.monotonic() - task.fields["since_s"])
        longer = "longer than usual, " if left < 0 else ""
        how = "at most" if task.fields["at_most"] else "about"
        return Text(f"{longer}{how} {words(max(left, 0.0) + task.fields['rest_s'])} left")


def words(seconds: float) -> str:
    """A length of time, as exact as a guess can be.

    >>> words(42), words(600)
    ('42 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def time_left(
    console: Console, lengths: Mapping[str, float | None], *, at_most: bool = False
) -> Iterator[Callable[[str], None]]:
    """Show how long all parts still take, `at_most` where some may be left out; yields what is to be told which part begins.

    Where nobody knows how long a part takes, it says so. Only a terminal shows it.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), _Left())
    progress = Progress(
        *columns, console=console, transient=True, refresh_per_second=1, disable=not console.is_terminal
    )
    weights = {name: _UNKNOWN_S if length is None else length for name, length in lengths.items()}
    names = list(lengths)
    with progress as bar:
        first: dict[str, Any] = {
            "rest_s": sum(weights.values()),
            "part_s": 0.0,
            "since_s": time.monotonic(),
            "unknown": False,
            "at_most": at_most,
        }
        task = bar.add_task("starting", total=sum(weights.values()) or None, **first)

        def begin(name: str) -> None:
            place = names.index(name)
            bar.update(
                task,
                description=name if len(names) == 1 else f"{name} ({place + 1} of {len(names)})",
                completed=sum(weights[one] for one in names[:place]),
                rest_s=sum(lengths[one] or 0.0 for one in names[place + 1 :]),
                part_s=weights[name],
                since_s=time.monotonic(),
                unknown=any(lengths[one] is None for one in names[place:]),
            )

        yield begin
