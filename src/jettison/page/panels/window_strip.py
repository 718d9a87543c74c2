"""The fate of windows, put together from the plans on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import field

from jettison.core.setting import Setting
from jettison.page.panels.panel import Drawing, Panel
from jettison.page.recent import read_setting
from jettison.policies.window.window_marks import WindowMarks

_MOST_WINDOWS = 400


class WindowStrip(Panel, kw_only=True, tag="windows"):
    """The fate of the last windows of one query, oldest first; `start_s` is empty where their grid is not on record."""

    query: str
    first: int
    marks: str
    start_s: list[float] = field(default_factory=list)
    size_s: float | None = None
    max_gap: int | None = None


class WindowStrips(Drawing):
    """A strip for each query, of what plans said of its windows, the latest ones."""

    of_one_plan: ClassVar[bool] = False

    def __init__(self) -> None:
        self._marks: dict[int, dict[int, str]] = {}

    def take(self, record: Mapping[str, Any]) -> None:
        """Of plans, the fate of windows; a damaged one says nothing."""
        for document in record["points"].values() if record["record"] == "plan" else ():
            setting = read_setting(document) if document.get("kind") == WindowMarks.kind else None
            if isinstance(setting, WindowMarks):
                self._take_marks(setting)

    def _take_marks(self, setting: WindowMarks) -> None:
        for place, (first, marks) in enumerate(zip(setting.first, setting.marks, strict=True)):
            known = self._marks.setdefault(place, {})
            known.update({first + offset: mark for offset, mark in enumerate(marks)})
            for number in sorted(known)[:-_MOST_WINDOWS]:
                del known[number]

    def panels(self, settings: Mapping[str, Setting], outline: Mapping[str, Any]) -> Iterator[WindowStrip]:
        for place, marks in self._marks.items():
            if not marks:
                continue
            last = max(marks)
            first = max(min(marks), last - _MOST_WINDOWS + 1)
            strip = WindowStrip(
                query=f"query {place}", first=first, marks="".join(marks.get(n, "?") for n in range(first, last + 1))
            )
            grids = outline.get("windows") or []
            if place < len(grids):
                grid = grids[place]
                slide, offset = grid["slide_us"], grid["offset_us"]
                strip.query, strip.size_s, strip.max_gap = grid["name"], grid["size_us"] / 1e6, grid["max_gap"]
                strip.start_s = [(offset + n * slide) / 1e6 for n in range(first, last + 1)]
            yield strip
