"""Reads YAML and JSON that somebody else may have written: what would grow beyond bounds is refused before it is built."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import yaml

from jettison.errors import InvalidInput, refuse

MOST_BYTES = 2**18
MOST_VALUES = 100_000
"""What a pipeline file may hold, in bytes and in values: far more than any that somebody wrote."""


def read(path: Path) -> dict[str, Any]:
    """The mapping in a file, unless it is too large, too deep, or grows beyond bounds by its aliases."""
    hint = "compare it with examples/network.yaml"
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ValueError(f"{size:,} bytes where at most {MOST_BYTES:,} make sense")
        text = path.read_text()
        document = json.loads(text) if path.suffix == ".json" else _from_yaml(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        got = " ".join(str(error).split())[:500]
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
