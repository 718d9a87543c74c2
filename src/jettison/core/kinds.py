"""Where kinds of settings and of records come from: modules that make them known once they are imported."""

from __future__ import annotations

from importlib import import_module

_KNOWN_BY = "jettison.policies"


def load_kinds() -> None:
    """Import what makes the kinds known that come with jettison, if nobody has yet: whoever reads a plan needs them.

    By its name, when a document is read, so that the core depends on no policy.
    """
    import_module(_KNOWN_BY)
