"""What all settings of drop points have in common.

A setting is a frozen dataclass with a `kind` that tells it apart in a serialised plan, a `keep_fraction`, the share of
unprotected rows that it is expected to keep, and `keeps_everything`. Its fields are numbers, texts, tuples of them, or
`None`. They travel as JSON, where a tuple becomes a list: a setting that holds tuples restores them itself.
"""

from __future__ import annotations

import math

from jettison.errors import InvalidSetting, explain

LONGEST_S = 1e9
"""The longest age in seconds that a setting speaks of, some thirty years."""


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


def check_late(late_after_s: float | None, **shares: float | tuple[float, ...] | None) -> None:
    """Raise `InvalidSetting` unless late rows have all of their settings, each sound, or none."""
    settings = {**shares, "late_after_s": late_after_s}
    given = [f"`{name}`" for name, value in settings.items() if value is not None]
    if not given:
        return
    if len(given) < len(settings):
        *first, last = [f"`{name}`" for name in settings]
        raise InvalidSetting(
            explain(
                f"{', '.join(first)} and {last} go together",
                f"{' and '.join(given)} alone",
                hint="give all of them, or none where late rows are treated like all others",
            )
        )
    assert late_after_s is not None
    check_positive("late_after_s", late_after_s)
    if late_after_s > LONGEST_S:
        hint = "where no row is to count as late, leave it out"
        raise InvalidSetting(
            explain(f"`late_after_s` of at most {LONGEST_S:g} seconds", f"{late_after_s:g}", hint=hint)
        )
    for name, share in shares.items():
        assert share is not None
        for one in share if isinstance(share, tuple) else (share,):
            check_fraction(name, one)
