"""The data space: named attributes, and the integer grid on which regions are cut.

Every point gets a *code* per attribute, an integer between 1 and 2**24 that grows with the value; 0 and 2**24 + 1
mean below and above the domain, and -1 that the value is missing. Regions are boxes of codes. As the code is one fixed
floating-point expression, a filter decides alike in numpy, on Spark and after it has travelled as bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import MissingColumn, did_you_mean, refuse

CELLS = 2**24
"""Codes of a domain are 1 to this."""
BELOW, ABOVE = 0, CELLS + 1
MISSING = -1
# The smallest and the largest value there is. Below them all, at minus infinity, queries find missing values.
LOWEST, HIGHEST = -np.finfo(np.float64).max, np.finfo(np.float64).max
# The upper edge of a domain lies this many cells before the end of the last one, so that it has a code itself.
_EDGE = 2.0**-10
MOST_ATTRIBUTES = 8

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One dimension of the data space; make it with `number`, `integer` or `category`.

    Parameters
    ----------
    name
        Column that holds the attribute.
    low, high
        Smallest and largest value of the domain, both inside it.
    whole
        Whether only whole numbers occur: then no cut is made between two of them.
    values
        The values of a categorical attribute, in the order in which they lie on the axis; empty for numbers.

    Examples
    --------
    >>> Attribute.number("price", 0, 1000)
    Attribute(name='price', low=0.0, high=1000.0, whole=False, values=())
    >>> Attribute.category("sector", ["tech", "food"]).coordinate("food")
    1.0
    """

    name: str
    low: float
    high: float
    whole: bool = False
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.low < self.end and math.isfinite(self.high - self.low)):
            refuse(
                "a domain must have finite `low` < `high`, and a finite width",
                f"[{self.low}, {self.high}]",
                where=f"attribute {self.name!r}",
                hint="narrow it to where rows lie: rows outside it are allowed",
            )
        if self.whole and self.end - self.low > CELLS:
            refuse(
                f"an attribute may have at most {CELLS:,} whole values",
                f"{self.end - self.low:,.0f}",
                where=f"attribute {self.name!r}",
                hint="use Attribute.number for wider ranges",
            )

    @classmethod
    def number(cls, name: str, low: float, high: float) -> Attribute:
        return cls(name, float(low), float(high))

    @classmethod
    def integer(cls, name: str, low: int, high: int) -> Attribute:
        return cls(name, float(low), float(high), whole=True)

    @classmethod
    def category(cls, name: str, values: Sequence[str]) -> Attribute:
        """An attribute of a few named values. Neighbours in `values` can share a region, so order them by likeness."""
        distinct = tuple(dict.fromkeys(values))
        if not distinct or len(distinct) != len(values):
            refuse(
                "`values` must hold one category or more, each once",
                repr(list(values)),
                where=f"attribute {name!r}",
                hint="list each category once",
            )
        return cls(name, 0.0, float(len(distinct) - 1), whole=True, values=distinct)

    @property
    def end(self) -> float:
        """Where the axis ends: each whole value owns the unit interval that begins at it."""
        return self.high + 1.0 if self.whole else self.high

    @property
    def scale(self) -> float:
        """Cells per unit of the attribute."""
        return (CELLS - _EDGE) / (self.end - self.low)

    @property
    def cells_per_value(self) -> float:
        """Cells between two whole values; 1 for continuous attributes, which can be cut anywhere."""
        return self.scale if self.whole else 1.0

    def coordinate(self, value: Any) -> float:
        """Place of a constant on the axis: the number itself, or the position of a category."""
        if not self.values:
            if isinstance(value, str):
                refuse(
                    f"{self.name!r} must be compared with a number",
                    repr(value),
                    hint="text is for `Attribute.category`",
                )
            return float(value)
        if value not in self.values:
            known = ", ".join(self.values[:8]) + (", ..." if len(self.values) > 8 else "")
            refuse(
                f"{self.name!r} must be compared with one of its values ({known})",
                repr(value),
                hint="name it among the `values` of the attribute",
            )
        return float(self.values.index(value))

    def coordinates(self, column: ArrayLike) -> Floats:
        """Places of a column of values: NaN for nulls, and unknown categories lie before the first one."""
        if not self.values:
            return np.asarray(column, dtype=np.float64)
        # Sorted names and a binary search: a dictionary lookup per row would be Python on the row path.
        raw = np.asarray(column)
        given = raw.astype(str)
        names = np.asarray(self.values)
        order = np.argsort(names)
        found = order[np.clip(np.searchsorted(names[order], given), 0, len(names) - 1)]
        places = np.where(names[found] == given, found.astype(np.float64), -1.0)
        if raw.dtype.kind not in "US":  # None, NaN or a library's own null: whatever is no text
            unknown = np.flatnonzero(places < 0.0)
            places[unknown[[not isinstance(value, str) for value in raw[unknown]]]] = np.nan
        return places


@dataclass(frozen=True)
class Space:
    """The product of up to eight attributes."""

    attributes: Sequence[Attribute]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        names = self.names
        if not 1 <= len(names) <= MOST_ATTRIBUTES or len(set(names)) != len(names):
            refuse(
                f"there must be 1 to {MOST_ATTRIBUTES} attributes, each with a name of its own",
                repr(names),
                hint="choose those that queries ask for most",
            )

    @cached_property
    def low(self) -> Floats:
        return np.array([one.low for one in self.attributes])

    @cached_property
    def scale(self) -> Floats:
        return np.array([one.scale for one in self.attributes])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.attributes)

    @property
    def dimensions(self) -> int:
        return len(self.attributes)

    def index(self, name: str) -> int:
        if name in self.names:
            return self.names.index(name)
        refuse(
            f"an expression must name one of the attributes {', '.join(self.names)}",
            repr(name),
            hint=did_you_mean(name, self.names, otherwise="put quotes around it if it is a text"),
            error=MissingColumn,
        )

    def points(self, columns: Mapping[str, ArrayLike]) -> Floats:
        """Coordinates of rows, shape (rows, attributes), from their columns."""
        for name in self.names:
            if name not in columns:
                refuse(
                    f"there must be a column for each of {', '.join(self.names)}",
                    f"none for {name!r}",
                    hint="columns go by the names of the attributes",
                    error=MissingColumn,
                )
        return np.column_stack([one.coordinates(columns[one.name]) for one in self.attributes])

    def positions(self, coordinates: Floats) -> Floats:
        """Edges of boxes as the cells that begin there, between 1 and 2**24 + 1, clipped to the domain.

        Whole numbers of cells, so that a box that ends where a region begins does not touch it by a sliver.
        """
        with np.errstate(over="ignore"):  # sides that are open reach beyond every number of cells
            cells = np.clip((coordinates - self.low) * self.scale + 1.0, 1.0, CELLS + 1.0)
        nearest: Floats = np.where([one.whole for one in self.attributes], np.floor(cells), np.rint(cells))
        return nearest

    def codes(self, points: Floats) -> Codes:
        """Codes of points, shape as given; 0 or 2**24 + 1 outside the domain, -1 for NaN."""
        with np.errstate(over="ignore"):
            cells = np.fmin(np.fmax((points - self.low) * self.scale + 1.0, BELOW), ABOVE)
        codes: Codes = cells.astype(np.int32)
        codes[np.isnan(points)] = MISSING
        return codes


def comparable(points: ArrayLike) -> Floats:
    """Points as boxes hold them: missing values at minus infinity, and no value beyond the largest numbers."""
    given = np.asarray(points, dtype=np.float64)
    return np.where(np.isnan(given), -np.inf, np.clip(given, LOWEST, HIGHEST))
