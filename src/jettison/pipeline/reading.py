"""Reads YAML and JSON that somebody else may have written, and says of every mistake where in the file it is.

What would grow beyond bounds is refused before it is built. Typed parts are checked by msgspec, whose errors are put into
the house form. Values of options may be secrets: no error shows one.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import yaml
from msgspec import Struct

from jettison.errors import InvalidInput, JettisonError, did_you_mean, refuse

Document = TypeVar("Document", bound=Struct)
Place = Sequence[str | int]
"""The way from the top of a document to a part of it, by names and numbers."""
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "object": "names with settings",
    "array": "a list",
}
_KINDS: dict[type, str] = {
    dict: "names with settings",
    list: "a list",
    str: "a text",
    bool: "true or false",
    type(None): "nothing",
    date: "a date",
    bytes: "bytes",
    set: "a set",
}
_EXAMPLE = "compare it with examples/network.yaml"
_HIDDEN = ("options", "spark")

MOST_BYTES = 2**18
MOST_VALUES = 100_000
"""What a pipeline file may hold, in bytes and in values: far more than any that somebody wrote."""


class Written:
    """A document and, where it comes from a file, the lines and columns that its parts stand in.

    Parameters
    ----------
    document
        What the file says, in the terms of JSON.
    name, text
        The file's name and text; empty where there is no file.
    """

    def __init__(self, document: Mapping[str, Any], name: str = "", text: str = "") -> None:
        self.document, self._name, self._text = document, name, text

    def where(self, place: Place, *, name: bool = False) -> str:
        """`file:line:column` of a part, or of its `name`; as near as there is one."""
        node = self._tree
        mark = None if node is None else node.start_mark
        for step in place:
            found = _part(node, step)
            if found is None:
                break
            node, mark = found[1], (found[0] if name else found[1]).start_mark
        return self._name if mark is None else f"{self._name}:{mark.line + 1}:{mark.column + 1}"

    @contextmanager
    def at(self, *place: str | int, name: bool = True) -> Iterator[None]:
        """Errors raised on purpose say in front where in the file the part is that they are about."""
        try:
            yield
        except JettisonError as error:
            if not self._name or str(error).startswith(f"{self._name}:"):
                raise
            raise type(error)(f"{self.where(place, name=name)}: {error}") from error

    @cached_property
    def _tree(self) -> yaml.Node | None:
        # JSON is YAML, but for tabs: then there is no line to tell.
        try:
            return yaml.compose(self._text, yaml.SafeLoader) if self._text else None
        except yaml.YAMLError:
            return None


def _part(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Name and value of a part of a node; merged ones come last."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    merged: list[yaml.Node] = []
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == str(step):
            return key, value
        if key.tag == "tag:yaml.org,2002:merge":
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
    return next(filter(None, (_part(one, step) for one in merged)), None)


def read(path: Path) -> Written:
    """The mapping in a file, unless it is too large, too deep, or grows beyond bounds by its aliases."""
    hint = _EXAMPLE
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ValueError(f"{size:,} bytes where at most {MOST_BYTES:,} make sense")
        text = path.read_text()
        document = _from_json(text) if path.suffix == ".json" else _from_yaml(text)
        # Escapes may write half a character, which no file, log or query can hold.
        json.dumps(document, ensure_ascii=False, default=str, skipkeys=True).encode()
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        got = f"text that is neither ({' '.join(_said(error).split())[:500]})"
        if isinstance(error, RecursionError):
            got = "one that is nested too deeply"
        if isinstance(error, OSError):
            got, hint = f"none that can be read ({error.strerror})", f"check the path, or {hint}"
        refuse("a pipeline file in YAML or JSON", got, where=str(path), hint=hint, error=InvalidInput, cause=error)
    if not isinstance(document, dict):
        got = f"a document that is {_kind(document)}"
        refuse("a file with `inputs` and `outputs`", got, where=str(path), hint=hint, error=InvalidInput)
    return Written(document, str(path), text)


def _said(error: BaseException) -> str:
    """An error of the parser without the line that it quotes, in which a secret may stand."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    mark = error.problem_mark
    return f"{error.problem}{'' if mark is None else f' in line {mark.line + 1}, column {mark.column + 1}'}"


def _from_json(text: str) -> Any:
    """The document, if no mapping has a name twice: Python's own reader would take the last of two without a word."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            with suppress(yaml.YAMLError):  # JSON is YAML, but for tabs: this says in which line
                _from_yaml(text)
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise ValueError(f"{twice!r} twice in one mapping")
        return found

    return json.loads(text, object_pairs_hook=once)


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
        if isinstance(node, yaml.MappingNode):
            _require_each_once(node)
        inner = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1.0 + sum(_size(one, known) for one in inner)
    return known[id(node)]


def _require_each_once(node: yaml.MappingNode) -> None:
    """YAML's own reader would take the last of two without a word."""
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            raise ValueError(f"{key.value!r} twice in one mapping, the second in line {key.start_mark.line + 1}")
        seen.add(str(key.value))


def checked(written: Written, kind: type[Document], *place: str, body: Any = None) -> Document:
    """A document, or a part of one, as a value; an error says where it is, such as `boxes.parse.cost`.

    >>> class Box(Struct, forbid_unknown_fields=True):
    ...     cost: float = 1.0
    >>> checked(Written({"cots": 4}), Box, "boxes", "parse")
    Traceback (most recent call last):
    jettison.errors.InvalidSetting: settings out of cost, got cots for boxes.parse. Hint: did you mean 'cost'?
    """
    body = written.document if body is None else body
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        _refuse(error, written, body, kind, place)


def meaning(kind: type[Struct], field: str) -> str:
    """A field with what its description says of it."""
    extra = getattr(get_type_hints(kind, include_extras=True)[field], "__metadata__", ())
    return ": ".join([field, *(meta.description for meta in extra if meta.description)])


def _refuse(error: msgspec.ValidationError, written: Written, body: Any, kind: type[Struct], start: Place) -> NoReturn:
    problem, _, path = str(error).partition(" - at ")
    steps = re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path)
    place, expected, owner = list(start), [kind], kind
    hint = _EXAMPLE
    for field, number in steps:
        step: str | int = field or (int(number) if number != "..." else _wrong_entry(body, expected))
        structs = [one for one in expected if isinstance(one, type) and issubclass(one, Struct)]
        if field and (named := [one for one in structs if field in one.__struct_fields__ and _fits(one, body)]):
            owner, hint = named[0], f"write {meaning(named[0], field)}"
        if isinstance(body, Mapping) and step not in body:
            break  # the tag of a union that is missing
        expected = [inner for one in expected for inner in _inside(one, step, body)]
        body = body[step]
        place.append(step)
    where = ".".join(map(str, place)) or "the pipeline"
    structs = [one for one in expected if isinstance(one, type) and issubclass(one, Struct) and _fits(one, body)]
    kind = structs[0] if structs else owner
    if match := re.match(r"Object contains unknown field `(.*)`", problem):
        known = sorted(kind.__struct_fields__)
        hint = getattr(kind, "gone", {}).get(match[1]) or did_you_mean(match[1], known, otherwise="remove it")
        with written.at(*place, match[1]):
            refuse(f"settings out of {', '.join(known)}", match[1], where=where, hint=hint, cause=error)
    with written.at(*place, name=False):
        if path.startswith("`key`") or "`key`" in problem:
            got = problem.rpartition("got ")[2]
            refuse("names that are texts", got, where=where, hint="put the name in quotes", cause=error)
        if match := re.match(r"Object missing required field `(.*)`", problem):
            tags = ", ".join(str(one.__struct_config__.tag) for one in structs)
            needed = meaning(kind, match[1]) if match[1] in kind.__struct_fields__ else f"{match[1]}: one of {tags}"
            refuse(f"`{match[1]}` must be given", "none", where=where, hint=f"write {needed}", cause=error)
        if problem.startswith(("Invalid enum value", "Invalid value")):
            known = _choices(expected)
            hint = did_you_mean(body, known, otherwise="take one of these")
            refuse(f"it must be one of {', '.join(known)}", repr(body)[:60], where=where, hint=hint, cause=error)
        wanted = re.sub(r"`([\w |]+)`", _in_words, problem.partition(", got")[0].removeprefix("Expected "))
        is_date = isinstance(body, date)
        got = _kind(body) if is_date or set(_HIDDEN) & set(map(str, place)) else repr(body)[:60]
        hint = "put it in quotes: YAML reads it as a date" if is_date else hint
        refuse(f"it must be {wanted}", got, where=where, hint=hint, cause=error)


def _fits(kind: type[Struct], body: Any) -> bool:
    """Whether a body may be of this type, by the tag that tells the types of a union apart."""
    tag, field = kind.__struct_config__.tag, kind.__struct_config__.tag_field
    given = body.get(field) if field and isinstance(body, Mapping) else None
    return given is None or given == tag


def _parts(expected: Any) -> Iterator[Any]:
    """The types that a type allows."""
    if get_origin(expected) is Annotated:
        yield from _parts(get_args(expected)[0])
    elif get_origin(expected) in (Union, types.UnionType):
        for one in get_args(expected):
            yield from _parts(one)
    else:
        yield expected


def _inside(expected: Any, step: str | int, body: Any) -> list[Any]:
    """What a type says of one of its parts."""
    inner = get_args(expected)
    if isinstance(expected, type) and issubclass(expected, Struct):
        known = step in expected.__struct_fields__ and _fits(expected, body)
        tagged = step == expected.__struct_config__.tag_field
        literal = [Literal[expected.__struct_config__.tag]] if tagged else []
        return list(_parts(get_type_hints(expected)[str(step)])) if known else literal
    if get_origin(expected) is dict:
        return list(_parts(inner[1]))
    if get_origin(expected) is tuple and isinstance(step, int):
        return list(_parts(inner[0] if Ellipsis in inner else inner[min(step, len(inner) - 1)]))
    return []


def _wrong_entry(body: Any, expected: Sequence[Any]) -> str:
    """The entry of a mapping that cannot be read: msgspec does not tell its name."""
    for name, value in body.items():
        for kind in (one for one in expected if get_origin(one) is dict):
            try:
                msgspec.convert(value, get_args(kind)[1])
            except msgspec.ValidationError:
                return str(name)
    return str(next(iter(body)))


def _choices(expected: Sequence[Any]) -> list[str]:
    return [choice for one in expected if get_origin(one) is Literal for choice in get_args(one)]


def _kind(body: Any) -> str:
    return next((words for kind, words in _KINDS.items() if isinstance(body, kind)), "a number")


def _in_words(kinds: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(name, name) for name in kinds[1].split(" | ") if name != "null")
