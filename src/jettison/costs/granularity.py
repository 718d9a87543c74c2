"""How many rows to time at once: single rows tell most, but each call of the user's function has its price."""

from __future__ import annotations

from dataclasses import dataclass, field

OVERHEAD_SHARE = 0.01
"""What calls may add to the work: half of the 2 % that timing may cost, as slicing and joining cost about as much."""
PROBE_EVERY = 16
"""One slice in so many is taken at another size, to learn what a call costs."""
LARGEST = 65_536
"""Beyond the usual size of an Arrow batch: whole batches then, as the function would get them without timing."""
_MEMORY = 0.995


@dataclass(slots=True)
class Granularity:
    """Chooses the rows of a slice so that the fixed price of a call stays below 1 % of the work in it.

    The price is learned by comparing: the same rows cost more, row by row, in small slices than in large ones, and the
    difference is the price of the calls. Times are compared relative to what the rows were estimated to cost, so that
    a slice of dear rows does not pass for an expensive call.

    Parameters
    ----------
    rows
        Rows a slice at present; a power of two.

    Examples
    --------
    >>> granularity = Granularity(rows=64)
    >>> for _ in range(2000):  # a call costs 1 ms, a row 10 microseconds
    ...     rows = granularity.next_rows()
    ...     granularity.learn(rows, time_s=0.001 + rows * 1e-5, estimated_s=rows * 1e-5)
    >>> granularity.rows
    16384
    >>> for _ in range(2000):  # a call costs 5 microseconds, a row 1 ms
    ...     rows = granularity.next_rows()
    ...     granularity.learn(rows, time_s=5e-6 + rows * 0.001, estimated_s=rows * 0.001)
    >>> granularity.rows
    1
    """

    rows: int = 1
    _slices: int = 0
    # Sums that fade: slices, calls per estimated second, its square, time per estimated second, product.
    _sums: list[float] = field(default_factory=lambda: [0.0] * 5)
    _rows: float = 0.0
    _work_s: float = 0.0

    def next_rows(self) -> int:
        """Rows of the next slice."""
        self._slices += 1
        if self._slices % PROBE_EVERY:
            return self.rows
        self._choose()
        larger = self._slices // PROBE_EVERY % 2 == 0
        return min(4 * self.rows, LARGEST) if larger or self.rows == 1 else max(self.rows // 4, 1)

    def learn(self, rows: int, time_s: float, estimated_s: float) -> None:
        """A slice of `rows` rows took `time_s`; its rows alone had been estimated at `estimated_s`."""
        if rows <= 0 or estimated_s <= 0.0 or time_s <= 0.0:
            return
        calls, ratio = 1.0 / estimated_s, time_s / estimated_s
        for place, value in enumerate((1.0, calls, calls * calls, ratio, calls * ratio)):
            self._sums[place] = self._sums[place] * _MEMORY + value
        self._rows = self._rows * _MEMORY + rows
        self._work_s = self._work_s * _MEMORY + estimated_s

    @property
    def call_s(self) -> float:
        """Learned price of a call: the slope of time over calls, both per unit of work."""
        slices, calls, squares, ratios, products = self._sums
        spread = slices * squares - calls * calls
        if spread <= 1e-12 * slices * squares:
            return 0.0
        return max(0.0, (slices * products - calls * ratios) / spread)

    def _choose(self) -> None:
        slices, calls, _, ratios, _ = self._sums
        if slices <= 0.0:
            return
        # What a row costs beyond its share of a call: estimates put right, per row.
        row_s = self._work_s / self._rows * max(1e-3, (ratios - self.call_s * calls) / slices)
        wanted = self.call_s / (OVERHEAD_SHARE * row_s)
        self.rows = 1
        while self.rows < min(wanted, LARGEST):
            self.rows *= 2
