"""Keys to cells: fingerprints that every process computes alike, and hash functions drawn from a universal family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.errors import InvalidInput, refuse

Fingerprints: TypeAlias = NDArray[np.uint32]
Cells: TypeAlias = NDArray[np.intp]

# Odd constants of the SplitMix64 finaliser, and the base of the polynomial over a key's bytes.
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BASE = np.uint64(0x9E3779B97F4A7C15)
_NULL_KEY = np.uint32(0x6E756C6C)
_SHORT_BYTES = 32  # keys up to this length are hashed position by position


@dataclass(frozen=True)
class SharedHashes:
    """`rows` hash functions from keys to `columns` cells, the same ones wherever the same seed is given.

    Any two different fingerprints share a cell of a given row with probability at most 1/columns + 2**-32 over the
    seed (multiply-add-shift on 32 bits, strongly universal [1]_, then scaled to the columns).

    Parameters
    ----------
    rows, columns
        Shape of the matrices that the cells index.
    seed
        Draws the functions. Sketches can be merged only when their hashes are equal.

    Examples
    --------
    >>> SharedHashes(rows=2, columns=55, seed=7).cells(fingerprints(["a", "b", "a"]))
    array([[ 6, 44,  6],
           [93, 98, 93]])

    Notes
    -----
    Cells index the flattened matrix, so that one gather or one count serves all rows.

    References
    ----------
    .. [1] Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer arithmetic without
       primes", STACS 1996.
    """

    rows: int
    columns: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            refuse(
                "`rows` and `columns` must be positive",
                f"{self.rows} and {self.columns}",
                hint="2 rows of 2048 columns suit some thousand keys",
            )

    @cached_property
    def _multiply_add(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        # Raw words: numpy promises them for ever, and may change how a `Generator` makes integers of them.
        drawn = np.random.PCG64(self.seed).random_raw(2 * self.rows).reshape(2, self.rows, 1)
        return drawn[0], drawn[1]

    def cells(self, keys: Fingerprints) -> Cells:
        """Index into the flattened matrix for every row (first axis) and key (second axis)."""
        multiplier, offset = self._multiply_add
        high = (multiplier * keys.astype(np.uint64) + offset) >> np.uint64(32)
        column = (high * np.uint64(self.columns)) >> np.uint64(32)
        return column.astype(np.intp) + (np.arange(self.rows, dtype=np.intp) * self.columns)[:, None]


def fingerprints(keys: Any) -> Fingerprints:
    """32-bit fingerprints of keys, equal in every process and on every machine.

    Takes an Arrow array or chunked array, a numpy array or a sequence, of integers, floats, decimals, strings, binaries,
    booleans or times. Null has a fingerprint of its own. Work is vectorised: no Python object is made per key.

    Notes
    -----
    Departure from the paper, whose keys are small integers: Python's `hash` of a string changes between processes,
    so a polynomial over the key's bytes is taken modulo 2**64 and mixed. It does not resist keys made to collide;
    those would share a cost, which costs accuracy and nothing else.

    Examples
    --------
    >>> bool(fingerprints(["route 66"])[0] == fingerprints(["route 6", "route 66"])[1])
    True
    """
    array = _as_arrow(keys)
    if pa.types.is_dictionary(array.type):
        per_key = fingerprints(array.dictionary)
        codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        hashed = per_key[codes] if len(per_key) else np.full(len(array), _NULL_KEY)
    elif _is_text(array.type):
        hashed = _mixed(_polynomials(array))
    elif pa.types.is_decimal(array.type):
        hashed = _mixed(_polynomials(array.cast(pa.string())))
    else:
        hashed = _mixed(_as_integers(array))
    if array.null_count:
        hashed = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL_KEY, hashed)
    return hashed


def _as_arrow(keys: Any) -> pa.Array:
    if isinstance(keys, pa.ChunkedArray):
        return keys.combine_chunks()
    if isinstance(keys, pa.Array):
        return keys
    try:
        return pa.array(keys)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        refuse(
            "keys of one simple type",
            f"{type(keys).__name__} ({error})",
            hint="cast the key to a text, a number or a timestamp; for several columns take concat_ws of them",
            error=InvalidInput,
            cause=error,
        )


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _as_integers(array: pa.Array) -> NDArray[np.uint64]:
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.uint64)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int64())
    elif pa.types.is_floating(kind):
        # Adding zero makes the two zeros one key; the bits of the double are then the key.
        doubles = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        bits: NDArray[np.uint64] = np.ascontiguousarray(doubles).view(np.uint64)
        return bits
    elif pa.types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not pa.types.is_integer(kind):
        refuse(
            "keys must be integers, floats, decimals, strings, binaries, booleans or times",
            str(kind),
            hint="derive a key column of one of these types, such as a string",
            error=InvalidInput,
        )
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
    whole: NDArray[np.uint64] = numbers.astype(np.uint64 if numbers.dtype == np.uint64 else np.int64).view(np.uint64)
    return whole


def _polynomials(array: pa.Array) -> NDArray[np.uint64]:
    """Sum of (byte + 1) * base**position, which tells "a" from "a" followed by a zero byte."""
    wide = array.cast(pa.large_binary()) if not pa.types.is_large_binary(array.type) else array
    _, offset_buffer, data = wide.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[wide.offset : wide.offset + len(wide) + 1]
    if not len(wide) or data is None or offsets[-1] == offsets[0]:
        return np.zeros(len(wide), dtype=np.uint64)
    lengths, starts = np.diff(offsets), offsets[:-1] - offsets[0]
    values = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]]
    powers = np.cumprod(np.full(int(lengths.max()), _BASE, dtype=np.uint64), dtype=np.uint64)
    if len(powers) <= _SHORT_BYTES:
        return _position_by_position(values, starts, lengths, powers)
    terms = (values.astype(np.uint64) + np.uint64(1)) * powers[np.arange(len(values)) - np.repeat(starts, lengths)]
    # A running sum is exact modulo 2**64, and unlike `reduceat` it has no special case for empty keys.
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    sums: NDArray[np.uint64] = running[starts + lengths] - running[starts]
    return sums


def _position_by_position(
    values: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], powers: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The same sums for short keys, in arrays of a number a key that stay in the cache, not of one a byte."""
    sums, last = np.zeros(len(starts), dtype=np.uint64), len(values) - 1
    for position, power in enumerate(powers):
        # A byte counts as itself plus one, and one beyond the end of its key as nothing.
        byte = values[np.minimum(starts + position, last)].astype(np.uint64) + np.uint64(1)
        sums += byte * (lengths > position) * power
    return sums


def _mixed(values: NDArray[np.uint64]) -> Fingerprints:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return ((values ^ (values >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)
