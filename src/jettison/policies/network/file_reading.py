"""Reads YAML and JSON that somebody else may have written.

What would grow beyond bounds is refused before it is built. Typed parts are checked by msgspec, whose errors are put into
the house form.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args, get_type_hints

import msgspec
import yaml
from msgspec import Struct

from jettison.errors import InvalidInput, did_you_mean, refuse

Document = TypeVar("Document", bound=Struct)
_WORDS = {
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "names with settings",
    "array": "a list",
}
_EXAMPLE = "compare it with examples/network.yaml"

MOST_BYTES = 2**18
MOST_VALUES = 100_000
"""What a pipeline file may hold, in bytes and in values: far more than any that somebody wrote."""


def read(path: Path) -> dict[str, Any]:
    """The mapping in a file, unless it is too large, too deep, or grows beyond bounds by its aliases."""
    hint = _EXAMPLE
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ValueError(f"{size:,} bytes where at most {MOST_BYTES:,} make sense")
        text = path.read_text()
        document = json.loads(text) if path.suffix == ".json" else _from_yaml(text)
        # Escapes may write half a character, which no file, log or query can hold.
        json.dumps(document, ensure_ascii=False, default=str, skipkeys=True).encode()
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        got = f"text that is neither ({' '.join(str(error).split())[:500]})"
        if isinstance(error, RecursionError):
            got = "one that is nested too deeply"
        if isinstance(error, OSError):
            got, hint = f"none that can be read ({error.strerror})", f"check the path, or {hint}"
        refuse("a pipeline file in YAML or JSON", got, where=str(path), hint=hint, error=InvalidInput, cause=error)
    if not isinstance(document, dict):
        refuse("a file with `inputs`, `boxes` and `outputs`", repr(document)[:60], where=str(path), hint=hint)
    return document


def _from_yaml(text: str) -> Any:
    """The document, if it is not much larger than it looks: an alias stands for all that it names, wherever it is used."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is not None and _size(node, {}) > MOST_VALUES:
            raise ValueError(f"one that its aliases make larger than {MOST_VALUES:,} values")
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """Values in a node with every alias written out; infinite where one stands for what it is part of."""
    if isinstance(node, yaml.ScalarNode):
        return 1.0
    if id(node) not in known:
        known[id(node)] = math.inf  # as long as it is being counted
        inner = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1.0 + sum(_size(one, known) for one in inner)
    return known[id(node)]


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
