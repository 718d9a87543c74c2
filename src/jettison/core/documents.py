"""Documents: values in the terms of JSON, which types describe and `msgspec` checks.

Types that many fields share have names here; what they refuse, they refuse in the same words everywhere. Text is written
and parsed by `json`: it stays ASCII, so that bytes and characters agree, and a name may hold whatever Python's texts may.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache, reduce
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from jettison.errors import InvalidSetting, refuse

_T = TypeVar("_T")
_LARGEST, _MOST = 2**63 - 1, 2.0**1023
_LONGEST_SHOWN = 200


def rule(must: str, hint: str, **limits: Any) -> msgspec.Meta:
    """Limits of a type, with the words in which a value beyond them is refused."""
    return msgspec.Meta(**limits, extra={"must": must, "hint": hint})


Share = Annotated[float, rule("must lie in [0, 1]", "pass the share kept, not the share dropped", ge=0.0, le=1.0)]
"""A share of rows that are kept."""
LONGEST_S = 1e9
"""The longest time in seconds that a document speaks of, some thirty years."""
Seconds = Annotated[
    float,
    rule(
        f"must be positive, and at most {LONGEST_S:g} seconds",
        "where it is to have no effect, leave it out rather than passing 0 or infinity",
        gt=0.0,
        le=LONGEST_S,
    ),
]
"""A length of time."""
Number = Annotated[float, rule("must be a finite number", "JSON has no infinity and no NaN", ge=-_MOST, le=_MOST)]
Positive = Annotated[
    float,
    rule(
        "must be a positive number",
        "where it is to have no effect, leave it out rather than passing 0",
        gt=0.0,
        le=_MOST,
    ),
]
"""A rate or a cost."""
Natural = Annotated[int, rule("must not be negative", "pass a whole number from 0 on", ge=0, le=_LARGEST)]
Int32 = Annotated[
    int, rule("must be a whole number of 32 bits", "it is a code, or a place in a list", ge=-(2**31), lt=2**31)
]
"""A whole number of 32 bits, with its sign; Spark reads it as one."""
# What outlives a process is calculated with again: these leave room for that.
Amount = Annotated[float, msgspec.Meta(ge=0.0, le=1e15)]
"""Rows, or a length of time."""
Moment = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
"""A point in time in seconds, or the way between two."""


def encode(document: object) -> str:
    """One line of ASCII; raises `ValueError` where a number is none that JSON knows.

    >>> encode({"share": 0.5, "pair": (1, None)})
    '{"share":0.5,"pair":[1,null]}'
    """
    return json.dumps(plain(document), allow_nan=False, separators=(",", ":"))


def plain(value: object) -> Any:
    """A value in the terms of JSON: numbers, texts, lists and objects."""
    return msgspec.to_builtins(value, enc_hook=_of_numpy)


def packed(value: object) -> Any:
    """As `plain`, but with arrays as text, to the bit: long ones are written and read much faster."""
    return msgspec.to_builtins(value, enc_hook=np.ndarray.tobytes)


def restored(document: object, expected: type[_T], *, most: float = math.inf, of: Callable[[Any], Any] = plain) -> _T:
    """What `plain` or `packed` made a document of; raises `ValueError` for any other, be it a key too few or too many.

    `most` is the largest number that an array may hold, on either side of 0.

    >>> restored(packed({"a": np.array([0.5, 1.5])}), dict[str, NDArray[np.float64]], of=packed)
    {'a': array([0.5, 1.5])}
    """
    try:
        value = msgspec.convert(document, expected, dec_hook=lambda kind, content: _array(kind, content, most))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if encode(of(value)) != encode(document):
        raise ValueError("keys are missing or unknown")
    return value


def parse(text: str | bytes) -> Any:
    """What a text says, whatever that is; raises `ValueError` where it is no JSON, or holds NaN or infinities."""
    try:
        return json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested without end") from error


def convert(document: object, expected: type[_T]) -> _T:
    """A document as a value of a type; raises `ValueError`, with the path to what is wrong."""
    try:
        return msgspec.convert(document, expected)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def decode(text: str | bytes, expected: type[_T]) -> _T:
    """What a text says, as a value of a type; raises `ValueError`, with the path to what is wrong.

    >>> decode('{"a": [1, 2]}', dict[str, tuple[int, ...]])
    {'a': (1, 2)}
    """
    return convert(parse(text), expected)


def checked(name: str, value: object, expected: Any) -> Any:
    """`value` as its type wants it: lists become tuples, and numpy's numbers Python's. Raises `InvalidSetting`.

    >>> checked("keeps", [0.5, 1], tuple[Share, ...])
    (0.5, 1.0)
    >>> checked("keeps", [0.5, 2], tuple[Share, ...])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    jettison.errors.InvalidSetting: `keeps` must lie in [0, 1], got 2 at [1]. Hint: pass the share kept, ...
    """
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError:
        pass
    try:
        value = plain(value)
        return msgspec.convert(value, expected)
    except (msgspec.ValidationError, TypeError) as error:
        _refuse_value(name, value, expected, error)


@cache
def field_types(of: type) -> dict[str, Any]:
    """The types of a dataclass's fields, with their rules."""
    hints = get_type_hints(of, include_extras=True)
    return {field.name: hints[field.name] for field in fields(of)}


def check_fields(value: Any) -> None:
    """Check all fields of a dataclass by their types, as `checked` does, frozen or not."""
    for name, expected in field_types(type(value)).items():  # type: ignore[arg-type]  # classes can be hashed
        object.__setattr__(value, name, checked(name, getattr(value, name), expected))


def _refuse_value(name: str, value: Any, expected: Any, error: Exception) -> NoReturn:
    found = re.search(r"at `\$(?P<path>(\[\d+\])+)`", str(error))
    path = found["path"] if found else ""
    wrong = repr(reduce(lambda part, place: part[int(place)], re.findall(r"\d+", path), value))[:_LONGEST_SHOWN]
    of_the_wrong_type = ", got " in str(error)
    got = wrong + (f" at {path}" if path else "") + (f" ({error})" if of_the_wrong_type else "")
    said = _said(expected) or {"must": "must have another type", "hint": "see the types of its class's fields"}
    refuse(f"`{name}` {said['must']}", got, hint=said["hint"], error=InvalidSetting, cause=error)


def _said(expected: Any) -> dict[str, str] | None:
    """The words of the first rule within a type."""
    for part in get_args(expected):
        words = part.extra if isinstance(part, msgspec.Meta) else _said(part)
        if words:
            return words
    return None


def _of_numpy(value: Any) -> Any:
    """Numbers and arrays of numpy as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} has no place in a document")


def _array(kind: Any, content: Any, most: float) -> NDArray[Any]:
    dtype = get_args(get_args(kind)[1])[0]
    if isinstance(content, str):
        numbers = np.frombuffer(base64.b64decode(content, validate=True), dtype)
    else:
        numbers = np.array(msgspec.convert(content, list[float]), dtype)
    if (np.abs(numbers) > most).any():
        raise ValueError(f"numbers beyond {most:g}")
    return numbers


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number that JSON knows")
