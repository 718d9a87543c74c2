"""Shares kept by region, as a map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct, convert

from jettison.core.setting import Setting
from jettison.page.panels.panel import Drawing, Panel
from jettison.policies.regions.region_setting import RegionDrop
from jettison.source.space import Attribute, Space


class RegionMap(Panel, kw_only=True, tag="regions"):
    """Shares kept over one or two attributes, by cell between `edges`; over further ones the mean by volume."""

    point: str
    attributes: list[str]
    edges: list[list[float]]
    values: list[list[str]]
    keep: list[list[float]]
    averaged_over: list[str]
    outside: float


class _Axis(Struct):
    name: str
    low: float
    end: float
    values: list[str] = []


class RegionMaps(Drawing):
    """A map for each drop point."""

    def panels(self, settings: Mapping[str, Setting], outline: Mapping[str, Any]) -> Iterator[RegionMap]:
        for point, setting in settings.items():
            if isinstance(setting, RegionDrop) and setting.cells:
                yield from _map(point, setting, outline)


def _map(point: str, setting: RegionDrop, outline: Mapping[str, Any]) -> Iterator[RegionMap]:
    try:
        stated = convert(outline.get("attributes"), list[_Axis])
    except ValueError:
        return
    if len(stated) != len(setting.cuts):
        return
    # Places before the first cut and behind the last are outside of the domain.
    shape = [len(cuts) + 1 for cuts in setting.cuts]
    keep = np.array(setting.keep)[np.array(setting.cells)].reshape(shape)
    keep = keep[tuple(slice(1, -1) for _ in shape)]
    for axis in range(len(shape) - 1, 1, -1):
        keep = np.average(keep, axis=axis, weights=np.diff(setting.cuts[axis]))
    space = Space([Attribute(one.name, one.low, one.end) for one in stated])
    yield RegionMap(
        point=point,
        attributes=[one.name for one in stated[:2]],
        edges=[
            [float(one.low + (code - 1) / space.scale[axis]) for code in setting.cuts[axis]]
            for axis, one in enumerate(stated[:2])
        ],
        values=[one.values for one in stated[:2]],
        keep=np.atleast_2d(keep.T).round(4).tolist(),
        averaged_over=[one.name for one in stated[2:]],
        outside=setting.keep[-1],
    )
