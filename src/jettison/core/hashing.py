"""The hash behind every random drop, the same as in the Spark backend, for arrays of row identities.

Spark decides with its `xxhash64` over a salt and the identity columns. This computes the same 64 bits with numpy, so
that the simulator keeps exactly the rows that Spark keeps.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(0x9E3779B185EBCA87),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0x85EBCA77C2B2AE63),
    np.uint64(0x27D4EB2F165667C5),
)
_SEED = np.uint64(42)
LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""The hashes, signed, lie between these."""

Hashes = NDArray[np.uint64]


def salt(point: str, token: str = "") -> int:
    """The number that makes the decisions of drop point `point` independent of all others'.

    `token` is the query's own: drop points of the same name in two queries decide independently too.
    """
    digest = hashlib.blake2b(f"{token}/{point}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def thresholds(share: NDArray[np.float64]) -> NDArray[np.int64]:
    """The largest hashes that are kept. Exact at 1; at 0 one hash in 2**64 is still kept.

    >>> thresholds(np.array([0.0, 0.5, 1.0])).tolist() == [LOWEST, 0, HIGHEST]
    True
    """
    inside = np.where((share > 0.0) & (share < 1.0), share, 0.5)
    found = (inside * float(2**64) + float(LOWEST)).astype(np.int64)
    return np.where(share >= 1.0, HIGHEST, np.where(share <= 0.0, LOWEST, found))


def salted(point: str, ids: NDArray[np.int64], token: str = "") -> NDArray[np.int64]:
    """`xxhash64(salt, id)` of Spark, as signed 64-bit numbers."""
    with np.errstate(over="ignore"):
        return _hash_long(np.asarray(ids, dtype=np.int64), _seed(point, token)).view(np.int64)


@lru_cache(maxsize=10_000)
def _seed(point: str, token: str) -> np.uint64:
    """The hash of the salt, which seeds that of the identity."""
    return np.uint64(_hash_long(np.array([salt(point, token)], dtype=np.int64), _SEED)[0])


def _hash_long(values: NDArray[np.int64], seed: np.uint64) -> Hashes:
    word = values.view(np.uint64)
    mixed = (seed + _P5 + np.uint64(8)) ^ (_rotated(word * _P2, 31) * _P1)
    return _finished(_rotated(mixed, 27) * _P1 + _P4)


def _rotated(word: Hashes, bits: int) -> Hashes:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


def _finished(word: Hashes) -> Hashes:
    word = (word ^ (word >> np.uint64(33))) * _P2
    word = (word ^ (word >> np.uint64(29))) * _P3
    return word ^ (word >> np.uint64(32))
