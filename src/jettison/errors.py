"""Every error that Jettison raises on purpose.

A message says what was expected, what came, where, and a hint. Each class also derives from the built-in that
fits, so that `except ValueError` keeps working for people who do not want to import ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn

from jettison.core.redact import redacted


class JettisonError(Exception):
    """Base of all errors raised on purpose."""


class InvalidSetting(JettisonError, ValueError):
    """A value lies outside what the setting admits."""


class InvalidInput(JettisonError, TypeError):
    """An object of the wrong kind was passed, such as a batch DataFrame where a stream is needed."""


class MissingColumn(JettisonError, LookupError):
    """A named column is not in the DataFrame."""


class DamagedPlan(JettisonError, ValueError):
    """Text that should hold a drop plan does not."""


class PlanTooLarge(JettisonError, ValueError):
    """A drop plan takes more room than its file may have."""


class Unsupported(JettisonError, RuntimeError):
    """The environment cannot do what was asked; refused before anything starts."""


class CheckpointInUse(JettisonError, RuntimeError):
    """Another run holds the checkpoint; refused before anything is written beside it."""


def explain(expected: str, got: str, *, hint: str, where: str = "") -> str:
    """Compose a message in the house form, without secrets; the hint says the way out and does not repeat the rule.

    >>> explain("`keep_fraction` must lie in [0, 1]", "1.4", where="drop point 'rides'",
    ...         hint="pass the share kept, not the share dropped")
    "`keep_fraction` must lie in [0, 1], got 1.4 for drop point 'rides'. Hint: pass the share kept, not the share dropped."
    """
    place = f" for {where}" if where else ""
    text = f"{expected}, got {got}{place}. Hint: {hint.removesuffix('?')}{'?' if hint.endswith('?') else '.'}"
    return redacted(text)


def refuse(
    expected: str,
    got: str,
    *,
    hint: str,
    where: str = "",
    error: type[JettisonError] = InvalidSetting,
    cause: BaseException | None = None,
) -> NoReturn:
    """Raise `error` with a message in the house form."""
    raise error(explain(expected, got, hint=hint, where=where)) from cause


def did_you_mean(given: object, known: Iterable[str], *, otherwise: str) -> str:
    """A hint for a name that is not known: the nearest one that is, or `otherwise`.

    >>> did_you_mean("Filtre", ["filter", "map"], otherwise="use a map"), did_you_mean("x", ["map"], otherwise="use a map")
    ("did you mean 'filter'?", 'use a map')
    """
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given).lower(), names, n=1)
    return f"did you mean {names[near[0]]!r}?" if near else otherwise
