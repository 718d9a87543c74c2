"""Typed parts of a file: msgspec checks them, and its errors are put into the house form."""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct

from jettison.errors import did_you_mean, refuse

Document = TypeVar("Document", bound=Struct)
_WORDS = {
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "names with settings",
    "array": "a list",
}
_EXAMPLE = "compare it with examples/network.yaml"


def checked(body: Any, kind: type[Document], where: str) -> Document:
    """A part of a file as a value; an error says where in the file, such as `boxes.parse.cost`.

    >>> class Box(Struct, forbid_unknown_fields=True):
    ...     cost: float = 1.0
    >>> checked({"cots": 4}, Box, "boxes.parse")
    Traceback (most recent call last):
    jettison.errors.InvalidSetting: settings out of cost, got cots for boxes.parse. Hint: did you mean 'cost'?
    """
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        _refuse(error, body, kind, where)


def meaning(kind: type[Struct], field: str) -> str:
    """A field with what its description says of it."""
    extra = getattr(get_type_hints(kind, include_extras=True)[field], "__metadata__", ())
    return ": ".join([field, *(meta.description for meta in extra)])


def _refuse(error: msgspec.ValidationError, body: Any, kind: type[Struct], where: str) -> NoReturn:
    problem, _, path = str(error).partition(" - at ")
    if path.startswith("`key`"):
        got, where = problem.rpartition(", got ")[2], where or "the pipeline"
        refuse("names that are texts", got, where=where, hint="put it in quotes", cause=error)
    hint, places = _EXAMPLE, [where] if where else []
    for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        places.append(name or number)
        body = body[name] if name else body[int(number)]
        if name:
            hint, inner = f"write {meaning(kind, name)}", get_type_hints(kind)[name]
            kind = inner if isinstance(inner, type) and issubclass(inner, Struct) else kind
    where = ".".join(places) or "the pipeline"
    if match := re.match(r"Object contains unknown field `(.*)`", problem):
        known = sorted(kind.__struct_fields__)
        hint = getattr(kind, "gone", {}).get(match[1]) or did_you_mean(match[1], known, otherwise="remove it")
        refuse(f"settings out of {', '.join(known)}", match[1], where=where, hint=hint, cause=error)
    if match := re.match(r"Object missing required field `(.*)`", problem):
        refuse(f"`{match[1]}` must be given", "none", where=where, hint=f"write {meaning(kind, match[1])}", cause=error)
    if problem.startswith("Invalid enum value"):
        known = list(get_args(get_args(get_type_hints(kind)[places[-1]])[0]))
        hint = did_you_mean(body, known, otherwise="take one of these")
        refuse(f"it must be one of {', '.join(known)}", repr(body), where=where, hint=hint, cause=error)
    if "`key`" in problem:
        refuse(
            "names that are texts",
            problem.rpartition("got ")[2],
            where=where,
            hint="put the name in quotes",
            cause=error,
        )
    expected = re.sub(r"`([\w |]+)`", _in_words, problem.partition(", got")[0].removeprefix("Expected "))
    refuse(f"it must be {expected}", repr(body)[:60], where=where, hint=hint, cause=error)


def _in_words(types: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(name, name) for name in types[1].split(" | ") if name != "null")
