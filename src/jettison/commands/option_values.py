"""What is typed behind options of commands: read, or refused before minutes of work rather than after them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from jettison.core import durations
from jettison.errors import refuse


def seconds(option: str, text: str) -> float:
    """A duration as typed: a number of seconds, or a text with a unit."""
    try:
        given: durations.Duration = float(text)
    except ValueError:
        given = text
    return durations.seconds(given, name=option)


def hours(text: str) -> tuple[int, int]:
    """Two full hours of the day."""
    first, _, end = text.partition("-")
    known = [str(hour) for hour in range(25)] + [f"{hour:02}" for hour in range(10)]
    if first not in known or end not in known or int(first) == int(end):
        hint = "write 22-6 for ten at night until six"
        refuse("--hours must be two different hours of the day", repr(text), hint=hint)
    return int(first), int(end)


def three(option: str, text: str, example: str) -> list[float]:
    """Three positive numbers, one for each phase."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != 3 or not all(math.isfinite(one) and one > 0 for one in found):
        refuse(f"{option} must be three positive numbers", repr(text), hint=f"write {example}")
    return found


def seeds(text: str | None) -> range | None:
    """So many seeds from 0 on, or those between two numbers; `None` where none are given.

    >>> seeds("3"), seeds("40:60")
    (range(0, 3), range(40, 60))
    """
    if text is None:
        return None
    first, _, stop = text.rpartition(":")
    try:
        found = range(int(first or 0), int(stop))
    except ValueError:
        found = range(0)
    if not found or found.start < 0:
        refuse("--seeds must be a number, or two with a colon between them", repr(text), hint="try 100, or 40:60")
    return found


def names(text: str | None) -> tuple[str, ...] | None:
    """Names with commas between them; `None` where none are given.

    >>> names("plain, tail")
    ('plain', 'tail')
    """
    return None if text is None else tuple(one.strip() for one in text.split(",") if one.strip())


def require_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written."""
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


def require_picture(path: Path, kinds: Sequence[str]) -> None:
    """Refuse a picture that could not be written, or of another kind."""
    require_writable("--picture", path)
    if path.suffix not in kinds:
        hint = f"for example {path.with_suffix(kinds[0])}"
        refuse(f"--picture must end in {' or '.join(kinds)}", str(path), hint=hint)
