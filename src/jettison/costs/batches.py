"""Arrow batches put together: on the way in, so that a decision sees many rows; on the way out, so that few travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

Batches = Iterator[pa.RecordBatch]

JOINED_ROWS, JOINED_BYTES = 1024, 1 << 20
"""Results of this size travel as they are."""


def gathered(batches: Batches, enough: Callable[[int], bool]) -> Iterator[list[pa.RecordBatch]]:
    """Batches gathered until their rows are enough; empty ones are left out."""
    together: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            together.append(batch)
        if together and enough(sum(one.num_rows for one in together)):
            yield together
            together = []
    if together:
        yield together


class Joiner:
    """Joins small results into larger ones, in their order.

    A function that is timed row by row gives results row by row, and to send a batch of one row costs a tenth of a
    millisecond. Nobody waits for them meanwhile: a micro-batch is seen when all of it is committed.

    Examples
    --------
    >>> joiner = Joiner()
    >>> one_row = pa.record_batch({"x": [1]})
    >>> [joiner.add(one_row), joiner.add(one_row), [batch.num_rows for batch in joiner.rest()]]
    [[], [], [2]]
    """

    def __init__(self) -> None:
        self._small: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, result: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Take a result; gives what is ready to travel."""
        rows = result.num_rows
        size = result.nbytes if rows < JOINED_ROWS else 0
        large = rows >= JOINED_ROWS or size >= JOINED_BYTES
        ready = self.rest() if large or (self._small and result.schema != self._small[0].schema) else []
        if large:
            return [*ready, result]
        self._small.append(result)
        self._rows += rows
        self._bytes += size
        if self._rows >= JOINED_ROWS or self._bytes >= JOINED_BYTES:
            ready += self.rest()
        return ready

    def rest(self) -> list[pa.RecordBatch]:
        """What is left, as one batch."""
        small, self._small, self._rows, self._bytes = self._small, [], 0, 0
        return (pa.Table.from_batches(small).combine_chunks().to_batches() or small[:1]) if small else []
