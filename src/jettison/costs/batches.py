"""Arrow batches put together: on the way in, so that a decision sees many rows; on the way out, so that few travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import pyarrow as pa

from jettison.errors import InvalidInput, refuse

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
    """Joins small results of a user's function into larger ones, in their order.

    A function that is timed row by row gives results row by row, and to send a batch of one row costs a tenth of a
    millisecond. Nobody waits for them meanwhile: a micro-batch is seen when all of it is committed.

    Results without rows do not travel: a function that filters gives many of them when it gets single rows, and columns
    without a value have no type. All others must have one schema, which Spark asks for as well, in other words.

    Examples
    --------
    >>> joiner = Joiner()
    >>> one_row = pa.record_batch({"x": [1]})
    >>> [joiner.add(one_row), joiner.add(one_row), [batch.num_rows for batch in joiner.rest()]]
    [[], [], [2]]
    """

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._small: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, result: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Take a result; gives what is ready to travel."""
        if not isinstance(result, pa.RecordBatch):
            hint = "make one by `pa.record_batch(columns)`; of a table, yield each of `table.to_batches()`"
            _refuse("the function must yield Arrow record batches", type(result).__name__, hint)
        rows = result.num_rows
        if not rows:
            return []
        if self._schema is None:
            self._schema = result.schema
        elif result.schema != self._schema:
            expected = f"all results of the function must have one schema, ({_in_words(self._schema)}) as in the first"
            hint = (
                "it gets slices, down to single rows, from which types are guessed wrongly; "
                "name them: `pa.record_batch(columns, schema=...)`"
            )
            _refuse(expected, f"({_in_words(result.schema)})", hint)
        size = result.nbytes if rows < JOINED_ROWS else JOINED_BYTES
        if size >= JOINED_BYTES:
            return [*self.rest(), result]
        self._small.append(result)
        self._rows += rows
        self._bytes += size
        return self.rest() if self._rows >= JOINED_ROWS or self._bytes >= JOINED_BYTES else []

    def rest(self) -> list[pa.RecordBatch]:
        """What is left, as one batch."""
        small, self._small, self._rows, self._bytes = self._small, [], 0, 0
        return pa.Table.from_batches(small).combine_chunks().to_batches() if small else []


def results_of(returned: object) -> Batches:
    """What a user's function returned, to be iterated over."""
    if not isinstance(returned, Iterable):
        hint = "loop over the batches that it gets, and `yield` a record batch for each"
        _refuse("the function must give an iterator of record batches", type(returned).__name__, hint)
    return iter(returned)


def _refuse(expected: str, got: str, hint: str) -> NoReturn:
    refuse(expected, got, where="load_aware", hint=hint, error=InvalidInput)


def _in_words(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {one.type}{'' if one.nullable else ' not null'}" for one in schema)
