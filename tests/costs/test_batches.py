from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.costs.batches import JOINED_BYTES, JOINED_ROWS, Joiner, gathered, results_of
from jettison.errors import InvalidInput


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"row": pa.array(range(first, first + rows), pa.int64())})


def joined(results: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    joiner = Joiner()
    return [ready for result in results for ready in joiner.add(result)] + list(joiner.rest())


@given(st.lists(st.integers(0, 2 * JOINED_ROWS), max_size=12))
def test_every_row_travels_once_in_its_order_and_small_batches_do_not(sizes: list[int]) -> None:
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    out = joined([batch(first, rows) for first, rows in zip(firsts, sizes, strict=True)])
    assert [row for one in out for row in one["row"].to_pylist()] == list(range(sum(sizes)))
    small = [one for one in out if one.num_rows < JOINED_ROWS]
    assert len(small) <= 1 + sum(rows >= JOINED_ROWS for rows in sizes)


def test_single_rows_travel_together() -> None:
    assert [one.num_rows for one in joined([batch(row, 1) for row in range(3000)])] == [1024, 1024, 952]


def test_a_few_rows_of_many_bytes_travel_at_once() -> None:
    image = pa.record_batch({"image": [b"x" * (JOINED_BYTES // 2 + 1)]})
    assert [one.num_rows for one in joined([image] * 4)] == [2, 2]


def test_results_without_rows_do_not_travel_whatever_type_was_guessed_for_them() -> None:
    nothing = pa.record_batch({"row": []})
    assert nothing.schema != batch(0, 1).schema
    assert [one.num_rows for one in joined([nothing, batch(0, 2), nothing, batch(2, 3), nothing])] == [5]
    assert joined([nothing]) == []


@pytest.mark.parametrize("rows", [1, 2 * JOINED_ROWS])
def test_results_of_another_schema_are_refused_with_the_reason(rows: int) -> None:
    guessed = pa.record_batch({"row": [None] * rows})
    with pytest.raises(InvalidInput, match=r"\(row int64\) as in the first, got \(row null\) .* single rows"):
        joined([batch(0, 1), guessed])


@pytest.mark.parametrize("result", [pa.table({"row": [1]}), [1], None])
def test_results_that_are_no_record_batches_are_refused(result: object) -> None:
    with pytest.raises(InvalidInput, match=f"got {type(result).__name__} .* Hint: make one"):
        joined([result])  # type: ignore[list-item]


def test_a_function_that_gives_nothing_to_iterate_over_is_refused() -> None:
    assert list(results_of([batch(0, 1)])) == [batch(0, 1)]
    with pytest.raises(InvalidInput, match=r"got NoneType .* `yield`"):
        results_of(None)


def test_batches_are_gathered_until_there_are_enough_rows() -> None:
    parts = list(gathered(iter([batch(0, 3), batch(3, 0), batch(3, 3), batch(6, 1)]), lambda rows: rows >= 5))
    assert [[one.num_rows for one in part] for part in parts] == [[3, 3], [1]]
