"""Durations as people write them: `"3 seconds"`, `"250 ms"`, `timedelta`, or a number of seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import NoReturn

from jettison.errors import refuse

Duration = str | float | int | timedelta

_SECONDS_PER_UNIT = {
    "us": 1e-6,
    "microsecond": 1e-6,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}
_WRITTEN = {"days": 86_400 * 10**6, "hours": 3600 * 10**6, "minutes": 60 * 10**6, "seconds": 10**6, "ms": 1000}
_PATTERN = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+)\s*")


def seconds(value: Duration, *, name: str = "duration") -> float:
    """Return `value` in seconds; it must be positive and finite.

    >>> seconds("3 seconds"), seconds("250 ms"), seconds(1.5)
    (3.0, 0.25, 1.5)
    """
    result = _read(value)
    if not (math.isfinite(result) and result > 0):
        _refuse(value, name)
    return result


def microseconds(value: Duration, *, name: str = "duration") -> int:
    """Return `value` in whole microseconds, Spark's own resolution; it must be positive.

    >>> microseconds("10 minutes"), microseconds("0.1 ms")
    (600000000, 100)
    """
    result = round(seconds(value, name=name) * 1e6)
    if result < 1:
        _refuse(value, name)
    return result


def signed_microseconds(value: Duration, *, name: str = "duration") -> int:
    """Return `value` in whole microseconds; unlike a length it may be zero or negative.

    >>> signed_microseconds("-15 seconds"), signed_microseconds(0), signed_microseconds(timedelta(seconds=-1))
    (-15000000, 0, -1000000)
    """
    backward = isinstance(value, str) and value.lstrip().startswith("-")
    length = -_read(str(value).lstrip()[1:]) if backward else _read(value)
    if not math.isfinite(length):
        hint = "write '3 seconds', '-250 ms' or 0"
        refuse(f"`{name}` must be a duration, of any sign", repr(value), hint=hint)
    return round(1e6 * length)


def written(duration_us: int) -> str:
    """Whole microseconds as people write them, in the largest unit that needs no more than three decimals.

    >>> written(600_000_000), written(1_500_000), written(-250_000), written(0)
    ('10 minutes', '1.5 seconds', '-250 ms', '0 seconds')
    """
    for unit, factor in _WRITTEN.items():
        if abs(duration_us) >= factor and 1000 * duration_us % factor == 0:
            return f"{duration_us / factor:.15g} {unit.removesuffix('s') if duration_us == factor else unit}"
    return "0 seconds" if duration_us == 0 else f"{duration_us} us"


def _read(value: Duration) -> float:
    """Seconds; not a number where it is no duration at all."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return _parse(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan


def _parse(text: str) -> float:
    match = _PATTERN.fullmatch(text)
    unit = match["unit"].lower() if match else ""
    singular = unit if unit in _SECONDS_PER_UNIT else unit.removesuffix("s")
    if match is None or singular not in _SECONDS_PER_UNIT:
        return math.nan
    return float(match["number"]) * _SECONDS_PER_UNIT[singular]


def _refuse(value: object, name: str) -> NoReturn:
    refuse(f"`{name}` must be a positive duration", repr(value), hint="write '3 seconds', '250 ms' or 1.5")
