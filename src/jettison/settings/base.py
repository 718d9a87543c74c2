"""What all settings of drop points have in common.

A setting is a frozen dataclass with a `kind` that tells it apart in a serialised plan, a `keep_fraction`, the share of
unprotected rows that it is expected to keep, and `keeps_everything`. Its fields are numbers, texts, tuples of them, or
`None`. They travel as JSON, where a tuple becomes a list: a setting that holds tuples restores them itself.
"""

from __future__ import annotations

import math

from jettison.errors import InvalidSetting, explain


def check_fraction(name: str, value: float) -> None:
    """Raise `InvalidSetting` unless `value` is a share of rows."""
    if not (isinstance(value, (int, float)) and 0.0 <= value <= 1.0):
        raise InvalidSetting(
            explain(f"`{name}` must lie in [0, 1]", repr(value), hint="pass the share kept, not the share dropped")
        )


def check_positive(name: str, value: float) -> None:
    """Raise `InvalidSetting` unless `value` is a finite number above zero."""
    if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
        raise InvalidSetting(
            explain(
                f"`{name}` must be positive",
                repr(value),
                hint="where it is to have no effect, leave the setting out rather than passing 0",
            )
        )
