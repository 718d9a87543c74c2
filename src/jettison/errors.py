"""Every error that Jettison raises on purpose.

A message says what was expected, what came, where, and a hint. Each class also derives from the built-in that
fits, so that `except ValueError` keeps working for people who do not want to import ours.
"""

from __future__ import annotations


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
    """A drop plan does not fit the fixed size of its file."""


class Unsupported(JettisonError, RuntimeError):
    """The environment cannot do what was asked; refused before anything starts."""


def explain(expected: str, got: str, *, where: str = "", hint: str = "") -> str:
    """Compose a message in the house form.

    >>> explain("`keep_fraction` must lie in [0, 1]", "1.4", where="drop point 'rides'",
    ...         hint="pass the share kept, not the share dropped")
    "`keep_fraction` must lie in [0, 1], got 1.4 for drop point 'rides'. Hint: pass the share kept, not the share dropped."
    """
    message = f"{expected}, got {got}"
    if where:
        message += f" for {where}"
    message += "."
    if hint:
        message += f" Hint: {hint.removesuffix('?')}{'?' if hint.endswith('?') else '.'}"
    return message
