"""Query expressions: comparisons of attributes with constants, joined by and, or, not.

    price > 10 and not (sector = 'tech' or qty < 5)
    price between 10 and 20 or sector in ('food', 'steel')

    weight is null or weight > 3

An expression becomes a list of half-open boxes, which are disjoint, so that volumes and hits can be added up.
Comparisons are exact: `x <= 5` ends just after 5. They have SQL's meaning: a comparison with a missing value is neither
true nor false, and an attribute that an expression does not mention may have any value or none. Missing values lie at
minus infinity, so only sides that begin there hold them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jettison.errors import InvalidSetting, explain, refuse
from jettison.source.space import HIGHEST, LOWEST, Space

Interval = tuple[float, float]
Box = tuple[Interval, ...]
Boxes = list[Box]


def intersection(first: Boxes, second: Boxes) -> Boxes:
    """Points in both sets."""
    return [met for one in first for other in second if (met := _meet(one, other)) is not None]


def union(first: Boxes, second: Boxes) -> Boxes:
    """Points in either set; what both hold is counted once."""
    return first + difference(second, first)


def difference(whole: Boxes, removed: Boxes) -> Boxes:
    """Points of the first set that are not in the second."""
    rest = whole
    for hole in removed:
        rest = [piece for box in rest for piece in _cut_out(box, hole)]
    return rest


def disjoint(boxes: Sequence[Box]) -> Boxes:
    """The union of boxes that may overlap."""
    result: Boxes = []
    for box in boxes:
        if all(low < high for low, high in box):
            result = union(result, [box])
    return result


def _meet(one: Box, other: Box) -> Box | None:
    met = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return met if all(low < high for low, high in met) else None


def _cut_out(box: Box, hole: Box) -> Boxes:
    """`box` without `hole`: at most two slabs per dimension."""
    if _meet(box, hole) is None:
        return [box]
    pieces: Boxes = []
    core = list(box)
    for axis, (low, high) in enumerate(hole):
        start, stop = core[axis]
        if start < low:
            pieces.append((*core[:axis], (start, low), *core[axis + 1 :]))
        if high < stop:
            pieces.append((*core[:axis], (high, stop), *core[axis + 1 :]))
        core[axis] = (max(start, low), min(stop, high))
    return pieces


MOST_BOXES = 4096

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<comparison><=|>=|<>|!=|==|=|<|>)|(?P<sign>\(|\)|,)|(?P<word>`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*))"
)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


_PRESENT: Interval = (LOWEST, math.inf)
_ABSENT: Interval = (-math.inf, LOWEST)


def parse(expression: str, space: Space) -> Boxes:
    """The points that satisfy `expression`, as disjoint boxes; none if nothing can.

    >>> from jettison.source.space import Attribute
    >>> space = Space([Attribute.number("x", 0, 10), Attribute.integer("n", 0, 9)])
    >>> parse("x between 2 and 4 and not (x >= 3 or n < 5)", space)
    [((2.0, 3.0), (5.0, inf))]
    >>> parse("n = 3", space)
    [((-inf, inf), (3.0, 4.0))]
    """
    return _Parser(expression, space).whole()


class _Parser:
    """Recursive descent; `or` binds weakest, then `and`, then `not`.

    `negated` asks for the points where a part is false instead of true. With missing values that is not the rest of the
    space, so negations are carried down to the comparisons.
    """

    def __init__(self, expression: str, space: Space) -> None:
        self._expression = expression
        self._space = space
        self._everything: Box = ((-math.inf, math.inf),) * space.dimensions  # any value of an attribute, or none
        self._tokens = self._scan()
        self._next = 0

    def whole(self) -> Boxes:
        boxes = self._disjunction(negated=False)
        if self._tokens[self._next].kind != "end":
            raise self._error("the end of the expression, `and` or `or`")
        return boxes

    def _disjunction(self, negated: bool) -> Boxes:
        return self._joined("or", self._conjunction, negated)

    def _conjunction(self, negated: bool) -> Boxes:
        return self._joined("and", self._negation, negated)

    def _joined(self, word: str, part: Callable[[bool], Boxes], negated: bool) -> Boxes:
        boxes, both = part(negated), intersection if (word == "and") != negated else union
        while self._accept(word):
            boxes = self._bounded(both(boxes, part(negated)))
        return boxes

    def _negation(self, negated: bool) -> Boxes:
        if self._accept("not"):
            return self._negation(not negated)
        if self._accept("("):
            boxes = self._disjunction(negated)
            self._expect(")")
            return boxes
        return self._comparison(negated)

    def _comparison(self, negated: bool) -> Boxes:
        if self._tokens[self._next].kind in ("number", "text"):
            constant, comparison, attribute = self._constant(), self._comparator(), self._attribute()
            true = self._compared(attribute, _MIRRORED.get(comparison, comparison), constant)
            return self._true_or_false(attribute, true, negated)
        attribute = self._attribute()
        if self._accept("is"):
            present = self._accept("not")
            self._expect("null", " after `is`")
            return self._slabs(self._space.index(attribute), [_PRESENT if present != negated else _ABSENT])
        if self._accept("not"):
            return self._true_or_false(attribute, self._range_or_list(attribute), not negated)
        if self._tokens[self._next].text.lower() in ("between", "in"):
            return self._true_or_false(attribute, self._range_or_list(attribute), negated)
        return self._true_or_false(attribute, self._compared(attribute, self._comparator(), self._constant()), negated)

    def _true_or_false(self, attribute: str, true: Boxes, negated: bool) -> Boxes:
        """Where a comparison of one attribute is true; `negated`: where it is false, which needs a value."""
        if not negated:
            return true
        return self._bounded(difference(self._slabs(self._space.index(attribute), [_PRESENT]), true))

    def _range_or_list(self, attribute: str) -> Boxes:
        if self._accept("between"):
            lower = self._compared(attribute, ">=", self._constant())
            self._expect("and", " after `between`")
            return intersection(lower, self._compared(attribute, "<=", self._constant()))
        if not self._accept("in"):
            raise self._error("`between` or `in`")
        self._expect("(")
        boxes = self._compared(attribute, "=", self._constant())
        while self._accept(","):
            boxes = union(boxes, self._compared(attribute, "=", self._constant()))
        self._expect(")")
        return boxes

    def _compared(self, name: str, operator: str, constant: float | str) -> Boxes:
        axis = self._space.index(name)
        attribute = self._space.attributes[axis]
        if attribute.values and operator not in ("=", "==", "!=", "<>"):
            refuse(
                f"the categories of {name!r} can be compared by = and != alone",
                operator,
                where=repr(self._expression),
                hint="name several by `in`",
            )
        value = min(max(attribute.coordinate(constant), LOWEST), HIGHEST)
        low, high = _PRESENT
        after = math.floor(value) + 1.0 if attribute.whole else math.nextafter(value, math.inf)
        start = float(math.ceil(value)) if attribute.whole else value
        intervals = {
            "<": [(low, start)],
            "<=": [(low, after)],
            ">": [(after, high)],
            ">=": [(start, high)],
            "=": [(value, after)] if not attribute.whole or value == start else [],
        }
        if operator in ("!=", "<>"):
            return difference(self._slabs(axis, [_PRESENT]), self._slabs(axis, intervals["="]))
        return self._slabs(axis, intervals["=" if operator == "==" else operator])

    def _slabs(self, axis: int, intervals: list[tuple[float, float]]) -> Boxes:
        whole = self._everything
        return [(*whole[:axis], interval, *whole[axis + 1 :]) for interval in intervals if interval[0] < interval[1]]

    def _bounded(self, boxes: Boxes) -> Boxes:
        if len(boxes) > MOST_BOXES:
            expected, hint = (
                f"an expression may be made of at most {MOST_BOXES} boxes",
                "divide it into several queries",
            )
            refuse(expected, str(len(boxes)), where=repr(self._expression), hint=hint)
        return boxes

    def _constant(self) -> float | str:
        token = self._take("a number or a quoted text", "number", "text")
        return float(token.text) if token.kind == "number" else token.text[1:-1].replace("''", "'")

    def _attribute(self) -> str:
        return self._take("the name of an attribute", "word").text.strip("`")

    def _comparator(self) -> str:
        return self._take("a comparison such as < or =", "comparison").text

    def _take(self, expected: str, *kinds: str) -> _Token:
        token = self._tokens[self._next]
        if token.kind not in kinds:
            raise self._error(expected)
        self._next += 1
        return token

    def _accept(self, text: str) -> bool:
        found = self._tokens[self._next].text.lower() == text
        self._next += found
        return found

    def _expect(self, text: str, after: str = "") -> None:
        if not self._accept(text):
            raise self._error(f"`{text}`{after}")

    def _scan(self) -> list[_Token]:
        tokens, place, text = [], 0, self._expression.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                rest = text[place:].lstrip()
                unknown = _Token("unknown", rest, len(text) - len(rest))
                raise self._error("an attribute, a constant or a comparison", unknown)
            kind = match.lastgroup or ""
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            place = match.end()
        return [*tokens, _Token("end", "the end", len(text))]

    def _error(self, expected: str, token: _Token | None = None) -> InvalidSetting:
        found = self._tokens[self._next] if token is None else token
        got, where = f"{found.text!r} at {found.place}", f"query {self._expression!r}"
        hint = "a query is like price > 10 and not (sector = 'tech' or qty < 5)"
        return InvalidSetting(explain(expected, got, where=where, hint=hint))
