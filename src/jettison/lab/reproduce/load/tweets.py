"""A stream of tweets whose cost depends on whom they mention: the real one where it is at hand, else one like it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jettison.costs.sketch import FloatArray
from jettison.lab.sim.load.workload import IntArray, Stream

COST_OF_CLASS_MS = {"media": 25.0, "politician": 5.0, "other": 1.0}
_REAL = "congress_tweets_2020/mentions_2020_06_to_2020_11.parquet"


def real_tweets() -> Path | None:
    """Where `JETTISON_DATA` (or `../shared/data`) holds the real mentions."""
    path = Path(os.environ.get("JETTISON_DATA", "../shared/data")) / _REAL
    return path if path.exists() else None


def tweet_stream(path: Path, rows: int | None = None) -> Stream:
    """Tweets of the real data: mentions of the same second form one tweet, keyed by the set of those mentioned."""
    mentions = pq.read_table(path, columns=["time", "entity", "entity_class"])
    times = mentions["time"].cast(pa.int64()).to_numpy()
    entities = mentions["entity"].combine_chunks().dictionary_encode()
    classes = mentions["entity_class"].combine_chunks().dictionary_encode()
    cost_of_code = np.array([COST_OF_CLASS_MS[name] for name in classes.dictionary.to_pylist()])
    tweet = np.cumsum(np.concatenate([[False], times[1:] != times[:-1]]))
    keys, costs = _combined(tweet, entities.indices.to_numpy(), cost_of_code[classes.indices.to_numpy()])
    return _stream(keys[:rows], costs[:rows])


def tweet_like_stream(rows: int, seed: int, entities: int = 35_000) -> Stream:
    """The paper's description without its data: 35,000 entities, the most frequent in 6.5 % of the mentions."""
    draw = np.random.default_rng([seed, 11])
    weights = 1.0 / np.arange(1, entities + 1) ** 0.9
    weights[0] = 0.065 / 0.935 * weights[1:].sum()
    class_costs = draw.choice(list(COST_OF_CLASS_MS.values()), size=entities, p=[0.05, 0.38, 0.57])
    mentions = draw.geometric(0.5, size=rows)
    tweet = np.repeat(np.arange(rows), mentions)
    entity = draw.choice(entities, size=len(tweet), p=weights / weights.sum())
    return _stream(*_combined(tweet, entity, class_costs[entity]))


def _combined(tweet: IntArray, entity: IntArray, cost: FloatArray) -> tuple[IntArray, FloatArray]:
    """Key and cost of each tweet; its key is the set of its entities, as a sum of mixed numbers."""
    mixed = (entity.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    starts = np.flatnonzero(np.concatenate([[True], tweet[1:] != tweet[:-1]]))
    _, keys = np.unique(np.add.reduceat(mixed, starts), return_inverse=True)
    return keys.astype(np.int64), np.bincount(tweet, weights=cost).astype(np.float64)


def _stream(keys: IntArray, costs: FloatArray) -> Stream:
    arrivals = np.arange(len(keys), dtype=np.float64) * float(costs.mean())
    past = slice(0, min(20_000, len(keys)))
    return Stream(keys, costs, arrivals, int(keys.max()) + 1, keys[past], costs[past])
