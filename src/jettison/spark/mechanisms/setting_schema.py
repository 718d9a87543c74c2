"""How Spark reads a setting in the plan's JSON: the types of its fields, as the DDL of a struct."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from jettison.core.documents import Int32

_DDL = {float: "double", int: "bigint", str: "string", bool: "boolean"}


def schema_of(fields: Mapping[str, Any], *names: str) -> str:
    """The fields of these names, or all of them; `KeyError` for a name that is none, and for a type that JSON lacks.

    >>> from jettison.core.documents import Share
    >>> schema_of({"keeps": tuple[Share, ...], "first": int | None})
    'struct<`keeps`: array<double>, `first`: bigint>'
    """
    return f"struct<{', '.join(f'`{name}`: {_ddl(fields[name])}' for name in names or fields)}>"


def _ddl(of: Any) -> str:
    if of == Int32:
        return "int"
    origin, parts = get_origin(of), get_args(of)
    if origin is Annotated:
        return _ddl(parts[0])
    if origin in (Union, types.UnionType):
        (only,) = (part for part in parts if part is not type(None))
        return _ddl(only)
    return f"array<{_ddl(parts[0])}>" if origin is tuple else _DDL[of]
