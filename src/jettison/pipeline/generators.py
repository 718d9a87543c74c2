"""Streams that a pipeline file has without any source: native SQL over the numbers that Spark's `rate` source counts.

Everything about a row follows from its number, by hashes, but for its times: the same number is the same row in every
run, and no Python makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.errors import did_you_mean, refuse

OPTIONS = ("rowsPerSecond", "rampUpTime", "numPartitions")
"""What `rate` takes, and so every generator."""


@dataclass(frozen=True, slots=True)
class Generator:
    """Columns over `value` and `timestamp`, which `rate` gives: first `drawn` ones, from which `columns` are made."""

    drawn: tuple[str, ...]
    columns: tuple[str, ...]


def _share(number: int) -> str:
    """A number in (0, 1) that looks drawn, another for each `number`."""
    return f"(pmod(xxhash64(value, {number}), 1048576) + 0.5D) / 1048576D"


def _normal(number: int) -> str:
    """A number that looks drawn from the standard normal distribution (Box and Muller)."""
    return f"sqrt(-2D * ln({_share(number)})) * cos(2D * pi() * {_share(number + 1)})"


_LATE = f"timestamp - make_dt_interval(0, 0, 0, cast(2D * {_share(0)} as decimal(18, 6))) as time"

GENERATORS: Mapping[str, Generator] = {
    # Taxi rides: of 150 zones the busiest has a seventh of all, the quietest a seven-hundredth.
    "rides": Generator(
        (
            "value as ride_id",
            "timestamp",
            _LATE,
            f"cast(pow(151D, {_share(1)}) as int) as zone",
            f"cast(pow(151D, {_share(2)}) as int) as goal",
            f"0.9D + 0.65D * {_normal(3)} as logarithm",
            f"{_share(5)} as paid",
            f"{_share(6)} as tipped",
        ),
        (
            "ride_id",
            "timestamp",
            "time",
            "format_string('Z%03d', zone) as zone",
            "format_string('Z%03d', goal) as dropoff",
            "round(1.1D * exp(logarithm), 2) as distance_km",
            "round(2.5D + 1.75D * exp(logarithm), 2) as fare",
            "round(if(paid < 0.25D, 0D, 0.3D * tipped * exp(logarithm)), 2) as tip",
            "case when paid < 0.25D then 'cash' when paid < 0.4D then 'app' else 'card' end as payment",
        ),
    ),
    # A thousand sensors with a level of their own, about which their readings scatter.
    "readings": Generator(
        (
            "value as reading_id",
            "timestamp",
            _LATE,
            "pmod(xxhash64(value, 1), 1000) as sensor",
            f"{_normal(2)} as scatter",
            f"{_share(4)} as wetness",
        ),
        (
            "reading_id",
            "timestamp",
            "time",
            "cast(sensor as int) as sensor",
            "round(15D + sensor / 100D + 2D * scatter, 2) as heat",
            "round(100D * wetness, 1) as humidity",
        ),
    ),
}


def check_option(format: str, option: str) -> None:
    """Refuse what a generator would pass over without a word.

    >>> check_option("rides", "rowsPerSec")
    Traceback (most recent call last):
    jettison.errors.InvalidSetting: options of rides out of rowsPerSecond, rampUpTime, numPartitions, got rowsPerSec. \
Hint: did you mean 'rowsPerSecond'?
    """
    if option.lower() not in {one.lower() for one in OPTIONS}:
        hint = did_you_mean(option, OPTIONS, otherwise="leave it out")
        refuse(f"options of {format} out of {', '.join(OPTIONS)}", option, hint=hint)
