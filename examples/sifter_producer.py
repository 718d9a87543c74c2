"""A producer that filters before it sends, and the server that ships it filters.

    python examples/sifter_producer.py

The producer's side uses `jettison.source` alone, which needs nothing but numpy. Here both sides live in one process and
the link between them is a Python list; put your own transport in its place.
"""

from __future__ import annotations

import argparse

import numpy as np

import jettison as jt
from jettison.source import SifterFilter

SECTORS = ("tech", "food", "steel", "energy")
SPACE = [jt.Attribute.number("price", 0, 500), jt.Attribute.category("sector", SECTORS)]


def orders(random: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """What the producer produces: mostly cheap food, which few ask for."""
    sector = random.choice(SECTORS, count, p=[0.15, 0.6, 0.15, 0.1])
    price = np.where(sector == "food", random.gamma(2, 10, count), random.gamma(9, 20, count)).clip(0, 500)
    return {"price": price, "sector": sector}


def standing_queries(random: np.random.Generator) -> jt.RangeQueries:
    """A few hundred queries, most of them about expensive technology."""
    texts = []
    for _ in range(400):
        low = random.uniform(100, 400)
        texts.append(f"price between {low:.2f} and {low + 20:.2f} and sector in ('tech', 'energy')")
    texts += [f"price < {limit:.2f} and sector = 'food'" for limit in random.uniform(5, 40, 20)]
    texts.append("price > 300 and not (sector = 'tech' or sector = 'food')")
    return jt.RangeQueries(SPACE, texts)


def overall_qos(queries: jt.RangeQueries, points: np.ndarray, keep: np.ndarray) -> float:
    """What the queries get of these rows; a query that wants none of them has all that it wants."""
    query, row = queries.matches(points)
    wanted, got = np.bincount(query, minlength=len(queries)), np.bincount(query, keep[row], minlength=len(queries))
    return queries.quality(np.divide(got, wanted, out=np.ones(len(queries)), where=wanted > 0))


def main(rounds: int = 8, rows: int = 200_000, throttler: float = 0.3, seed: int = 1) -> float:
    """Run both sides and return the last round's pass rate."""
    random = np.random.default_rng(seed)
    queries = standing_queries(random)
    server: jt.Sifter | None = None
    producer: SifterFilter | None = None
    rate, asked = 1.0, throttler
    for number in range(rounds):
        batch = orders(random, rows)
        points = queries.space.points(batch)
        keep = np.ones(rows, dtype=bool) if producer is None else producer.decide(batch).keep
        rate = float(keep.mean())
        print(f"round {number}: {100 * rate:5.1f} % sent, overall QoS {overall_qos(queries, points, keep):.3f}", end="")
        if server is None:
            # Before the first filter everything is sent, and the server samples for itself.
            server = jt.Sifter(queries, points[::100], reserve=0.01, sample_every=100)
            cause = f"built for a throttler of {throttler:.4f} from {len(points[::100])} rows"
        elif abs(rate - throttler) > 0.005 * throttler:  # a sample is only a sample
            asked *= throttler / rate
            cause = f"{rate:.4f} of the rows passed instead of {throttler:.4f}"
        else:
            print()
            continue
        shipped = server.to_bytes(asked)
        print(f"  -> {len(shipped)} bytes shipped: {cause}")
        if producer is None:
            producer = SifterFilter.from_bytes(shipped)
        else:
            producer.install(shipped)
    print(f"Random dropping at {100 * throttler:.0f} % would give an overall QoS of {throttler:.3f}.")
    return rate


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--throttler", type=float, default=0.3, help="share of the rows that the server can process")
    given = parser.parse_args()
    main(given.rounds, throttler=given.throttler)
