"""What of the controller outlives its process, as JSON: dataclasses whose annotations say which values are sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

# Limits on both sides keep out NaN and infinities, too.
Number = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
Length = Annotated[float, msgspec.Meta(ge=0.0, le=1e15)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
Vector = NDArray[np.float64]
_Numbers = list[Annotated[float, msgspec.Meta(ge=-100.0, le=100.0)]]
_Kind = TypeVar("_Kind")


def to_plain(memory: Any) -> dict[str, Any]:
    """A dataclass as numbers, texts, lists and mappings, from which `from_plain` restores an equal one."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(memory, enc_hook=np.ndarray.tolist))
    return plain


def from_plain(document: Mapping[str, Any], kind: type[_Kind]) -> _Kind:
    """Restore what `to_plain` gave; raises `ValueError` for anything else, be it a key too few or too many."""
    memory = msgspec.convert(document, kind, dec_hook=lambda _, numbers: np.array(msgspec.convert(numbers, _Numbers)))
    if to_plain(memory) != document:
        raise ValueError("keys are missing or unknown")
    return memory
