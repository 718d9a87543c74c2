"""The bar that a measured figure must meet: shared by benchmarks and by the claims of reproductions."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """Limits of a figure; one that could not be measured (NaN) meets none.

    Examples
    --------
    >>> bar = Bar(at_least=0.93, at_most=0.97)
    >>> str(bar), bar.met_by(0.95), bar.met_by(float("nan"))
    ('>= 0.93 and <= 0.97', True, False)
    """

    at_most: float | None = None
    at_least: float | None = None

    def __bool__(self) -> bool:
        """Whether there is a limit at all."""
        return self.at_most is not None or self.at_least is not None

    def __str__(self) -> str:
        sides = ((">=", self.at_least), ("<=", self.at_most))
        return " and ".join(f"{sign} {limit:g}" for sign, limit in sides if limit is not None)

    def met_by(self, figure: float) -> bool:
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= figure <= high

    def met_within(self, lower: float, upper: float) -> bool | None:
        """Whether all figures between two bounds meet it, or none does; `None` where some do.

        >>> bar = Bar(at_most=1.25)
        >>> bar.met_within(1.1, 1.2), bar.met_within(1.3, 1.4), bar.met_within(1.2, 1.3)
        (True, False, None)
        """
        if self.met_by(lower) and self.met_by(upper):
            return True
        below = self.at_least is not None and not upper >= self.at_least
        above = self.at_most is not None and not lower <= self.at_most
        return False if below or above else None
