"""What a plan tells one drop point to do: what all kinds of settings have in common.

A kind of setting is a frozen dataclass that derives from `Setting`; with that it can be restored from a plan's text. Its
fields are numbers, texts, tuples of them, or `None`, and their types say what is sound: `jettison.core.documents` has some.
Values that do not fit are refused, wherever they come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from jettison.core.decision import Candidates, Decision
from jettison.core.documents import check_fields, field_types
from jettison.core.kinds import load_kinds
from jettison.core.spec import Spec
from jettison.errors import Unsupported, refuse

_kinds: dict[str, type[Setting]] = {}
SETTING_BY_KIND: Mapping[str, type[Setting]] = MappingProxyType(_kinds)
"""All kinds whose modules were imported."""


class Setting(ABC):
    """What a plan tells one drop point to do."""

    __slots__ = ()

    kind: ClassVar[str]
    """Tells the setting apart in a plan's text."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        known = _kinds.setdefault(cls.kind, cls)
        if known.__qualname__ != cls.__qualname__ or known.__module__ != cls.__module__:
            got = f"{known.__qualname__} and {cls.__qualname__}"
            refuse(f"one setting of the kind {cls.kind!r}", got, hint="give yours another `kind`")
        _kinds[cls.kind] = cls  # a dataclass with slots is made twice; the second one counts

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Refuse what the types of the fields cannot tell: values that do not fit together."""
        return

    if TYPE_CHECKING:  # a field in most kinds, which a property here would be taken for the default of

        @property
        def keep_fraction(self) -> float:
            """Share of the unprotected rows to come that the setting is expected to keep; some kinds keep just that."""

    @property
    def keep_fraction_of_late(self) -> float:
        """The same for rows that are late when their batch starts: like all others, unless a kind differs."""
        return self.keep_fraction

    @property
    @abstractmethod
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped, late or not."""

    @property
    def whole_answers(self) -> bool:
        """Whether what is dropped spares every answer that is delivered."""
        return False

    @property
    def keeps_a_share(self) -> bool:
        """Whether of any rows that differ in their identity the share that is kept is known beforehand."""
        return False

    @property
    def when_released(self) -> Setting | None:
        """What cannot be taken back when everything is to be kept; `None` where nothing remains."""
        return None

    @property
    def abridged(self) -> tuple[Setting, dict[str, Any]] | None:
        """What the ledger keeps of a long setting, and what it was in brief; `None` where it keeps all."""
        return None

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """Which rows are kept, and their weights: the meaning of the setting, which every backend shares."""
        refuse("a kind of setting that decides row by row", repr(self.kind), hint="run it on Spark", error=Unsupported)

    def to_document(self) -> dict[str, Any]:
        """Its `kind` and all fields, in the terms of JSON; `from_document` restores it."""
        return {"kind": self.kind} | {name: getattr(self, name) for name in field_types(type(self))}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Setting:
        """Restore a setting of any kind; raises `InvalidSetting`, or `TypeError` where fields are missing or unknown."""
        load_kinds()
        kind = document.get("kind")
        known = _kinds.get(kind) if isinstance(kind, str) else None
        if known is None:
            hint = "was it written by a newer release, or was the module of its policy not imported?"
            refuse(f"`kind` must be one of {sorted(_kinds)}", repr(kind), hint=hint)
        return known(**{name: value for name, value in document.items() if name != "kind"})


def check_together(**settings: object) -> None:
    """Raise `InvalidSetting` unless all of these are given, or none."""
    given = [f"`{name}`" for name, value in settings.items() if value is not None]
    if given and len(given) < len(settings):
        *first, last = [f"`{name}`" for name in settings]
        refuse(
            f"{', '.join(first)} and {last} go together",
            f"{' and '.join(given)} alone",
            hint="give all of them, or none where late rows are treated like all others",
        )
