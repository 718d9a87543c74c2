"""What all settings of drop points have in common."""

from __future__ import annotations

from typing import ClassVar, Protocol

from jettison.errors import InvalidSetting, explain


class SettingLike(Protocol):
    """What a drop point does, as a frozen dataclass whose fields are numbers, texts, tuples of them, or `None`.

    The fields travel as JSON, where a tuple becomes a list: a setting that holds tuples restores them itself.
    """

    kind: ClassVar[str]
    """Tells the settings apart in a serialised plan."""

    @property
    def keep_fraction(self) -> float:
        """Expected share of the unprotected rows that are kept."""
        ...

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped."""
        ...


def check_fraction(name: str, value: float) -> None:
    """Raise `InvalidSetting` unless `value` is a share of rows."""
    if not (isinstance(value, (int, float)) and 0.0 <= value <= 1.0):
        raise InvalidSetting(
            explain(f"`{name}` must lie in [0, 1]", repr(value), hint="pass the share kept, not the share dropped")
        )
