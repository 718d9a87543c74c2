"""Standing range queries: what each wants of the stream, how much it matters, and how its quality falls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import refuse
from jettison.policies.regions import matching
from jettison.policies.regions.expression import disjoint, parse
from jettison.source.space import LOWEST, Attribute, Floats, Space, comparable

Indices = NDArray[np.int64]


class RangeQueries:
    """Many standing queries over one stream, each a union of disjoint boxes.

    A row counts once for a query however many of its boxes were written to hold it. Which rows satisfy a query is as in
    SQL: a missing value (null or NaN) satisfies no comparison, and matters only to queries that mention its attribute.

    The quality of service (QoS) of a query is `1 - slope * (1 - completeness)`, where completeness is the share of its
    rows that it gets.

    Parameters
    ----------
    attributes
        The data space.
    expressions
        Comparisons with `and`, `or`, `not`, `between` and `in`; a mapping names the queries.
    weights
        Importance of each query, equal if not given; scaled to sum 1.
    slopes
        Loss of quality per unit of lost completeness, in [0, 1]; 1 if not given.

    Examples
    --------
    >>> space = [Attribute.number("price", 0, 100), Attribute.category("sector", ["tech", "food"])]
    >>> queries = RangeQueries(space, ["price > 90", "price < 50 and not sector = 'tech'", "price < 5 or price < 10"])
    >>> len(queries)
    3
    >>> queries.hits([[95.0, 0.0], [3.0, 1.0], [95.0, float("nan")]]).tolist()
    [1, 2, 1]

    Notes
    -----
    Departure from [1]_: its slopes are drawn from [1, 2], which makes a QoS negative; here a slope lies in [0, 1].

    References
    ----------
    .. [1] Gedik, Wu, Yu: Efficient Construction of Compact Shedding Filters for Data Stream Processing. ICDE 2007.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute] | Space,
        expressions: Sequence[str] | Mapping[str, str],
        *,
        weights: ArrayLike | None = None,
        slopes: ArrayLike | None = None,
    ) -> None:
        if isinstance(expressions, str):
            refuse("`expressions` must be a list of texts, or a mapping", repr(expressions), hint="put it into a list")
        if not expressions:
            refuse("`expressions` must hold a query", "none", hint='write one that wants all rows as "price >= 0"')
        space = attributes if isinstance(attributes, Space) else Space(attributes)
        texts = list(expressions.values()) if isinstance(expressions, Mapping) else list(expressions)
        boxes = [parse(text, space) for text in texts]
        owner = np.repeat(np.arange(len(texts)), [len(one) for one in boxes])
        corners = np.array([box for one in boxes for box in one], dtype=np.float64).reshape(-1, space.dimensions, 2)
        names = tuple(expressions) if isinstance(expressions, Mapping) else ()
        self._fill(space, corners[:, :, 0], corners[:, :, 1], owner, len(texts), weights, slopes, names)

    @classmethod
    def from_boxes(
        cls,
        attributes: Sequence[Attribute] | Space,
        low: ArrayLike,
        high: ArrayLike,
        *,
        owner: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        slopes: ArrayLike | None = None,
    ) -> RangeQueries:
        """Queries from half-open boxes `[low, high)`, shape (boxes, attributes).

        A side at the edge of the domain or beyond is open. Where both sides of an attribute are, the query does not care
        about it: whatever its value, or none, the row is wanted. `owner` gives the query that each box belongs to, one
        query a box if not given. Boxes of one query may overlap.
        """
        space = attributes if isinstance(attributes, Space) else Space(attributes)
        lows, highs = (np.asarray(side, dtype=np.float64).reshape(-1, space.dimensions) for side in (low, high))
        if lows.shape != highs.shape or np.isnan(lows).any() or np.isnan(highs).any():
            refuse(
                "`low` and `high` must have one shape and hold no NaN",
                f"{lows.shape} and {highs.shape}",
                hint="leave a side open by the edge of the domain, not by NaN",
            )
        owners = np.arange(len(lows)) if owner is None else np.asarray(owner, dtype=np.int64)
        if len(owners) != len(lows) or (len(owners) and owners.min() < 0):
            refuse(
                "`owner` must hold one number from 0 for each box",
                f"{len(owners)} for {len(lows)} boxes",
                hint="it says by number, from 0, which query a box belongs to",
            )
        count = max(int(owners.max(initial=-1)) + 1, _length(weights), _length(slopes))
        if owner is not None:
            lows, highs, owners = _without_overlaps(lows, highs, owners)
        made = cls.__new__(cls)
        made._fill(space, *_opened(space, lows, highs), owners, count, weights, slopes, ())
        return made

    def _fill(
        self,
        space: Space,
        low: Floats,
        high: Floats,
        owner: Indices,
        count: int,
        weights: ArrayLike | None,
        slopes: ArrayLike | None,
        names: tuple[str, ...],
    ) -> None:
        solid = (low < high).all(axis=1)
        self.space = space
        self.low, self.high, self.owner = low[solid], high[solid], owner[solid]
        self.names = names or tuple(f"query{i}" for i in range(count))
        self.weights = _per_query(weights, count, "weights", np.inf)
        self.slopes = _per_query(slopes, count, "slopes", 1.0)
        if count and not self.weights.sum() > 0:
            refuse("one of the `weights` must be positive", repr(weights), hint="leave them out for equal ones")
        self.weights = self.weights / self.weights.sum() if count else self.weights

    def __len__(self) -> int:
        return len(self.weights)

    def hits(self, points: ArrayLike) -> Indices:
        """Number of queries that each point satisfies."""
        count = np.zeros(len(np.asarray(points)), dtype=np.int64)
        for _, point in self.matching_blocks(points):
            count += np.bincount(point, minlength=len(count))
        return count

    def matches(self, points: ArrayLike) -> tuple[Indices, Indices]:
        """All pairs (query, point) where the point satisfies the query."""
        found = list(self.matching_blocks(points))
        if not found:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        return np.concatenate([query for query, _ in found]), np.concatenate([point for _, point in found])

    def matching_blocks(self, points: ArrayLike) -> Iterator[tuple[Indices, Indices]]:
        """The same pairs, in blocks of bounded size."""
        for box, point in matching.pairs(comparable(points), self.low, self.high):
            yield self.owner[box], point

    def quality(self, completeness: Floats) -> float:
        """Overall QoS of the completeness of each query; an empty query counts as complete."""
        return float(self.weights @ (1.0 - self.slopes * (1.0 - completeness)))


def completeness(matched: Indices, kept: Floats, queries: int) -> Floats:
    """Share of its rows that each query gets, from matching pairs: the query, and how much of the row is kept.

    >>> completeness(np.array([0, 0, 2]), np.array([1.0, 0.0, 0.5]), 3).tolist()
    [0.5, 1.0, 0.5]
    """
    wanted = np.bincount(matched, minlength=queries)
    got = np.bincount(matched, weights=kept, minlength=queries)
    return np.where(wanted > 0, got / np.maximum(wanted, 1), 1.0)


def _per_query(given: ArrayLike | None, count: int, name: str, most: float) -> Floats:
    values = np.ones(count) if given is None else np.asarray(given, dtype=np.float64)
    if values.shape != (count,) or not np.all((values >= 0.0) & (values <= most) & np.isfinite(values)):
        bounds = "[0, 1]" if most == 1.0 else "[0, inf)"
        refuse(
            f"`{name}` must hold {count} numbers in {bounds}", repr(given), hint="one for each query, in their order"
        )
    return values


def _length(given: ArrayLike | None) -> int:
    return 0 if given is None else len(np.asarray(given))


def _opened(space: Space, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The boxes with sides that reach the edge of the domain moved to infinity, where they hold what lies beyond it."""
    below, above = low <= space.low, high >= np.array([one.end for one in space.attributes])
    low = np.where(below, np.where(above, -np.inf, LOWEST), low)
    return low, np.where(above, np.inf, high)


def _without_overlaps(low: Floats, high: Floats, owner: Indices) -> tuple[Floats, Floats, Indices]:
    """Replace the boxes of queries that own several by disjoint ones."""
    order = np.argsort(owner, kind="stable")
    low, high, owner = low[order], high[order], owner[order]
    several = np.bincount(owner)[owner] > 1
    lows, highs, owners = [low[~several]], [high[~several]], [owner[~several]]
    for query in np.unique(owner[several]):
        mine = owner == query
        boxes = disjoint(
            [tuple(zip(a, b, strict=True)) for a, b in zip(low[mine].tolist(), high[mine].tolist(), strict=True)]
        )
        corners = np.array(boxes).reshape(-1, low.shape[1], 2)
        lows.append(corners[:, :, 0])
        highs.append(corners[:, :, 1])
        owners.append(np.full(len(boxes), query))
    together = np.concatenate(owners)
    order = np.argsort(together, kind="stable")
    return np.concatenate(lows)[order], np.concatenate(highs)[order], together[order]
