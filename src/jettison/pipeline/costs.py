"""What the boxes of a pipeline were measured to cost, beside the checkpoint: measured once, for all plans and runs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from jettison.core.documents import Amount, decode, encode
from jettison.core.storage import home
from jettison.errors import JettisonError
from jettison.pipeline.document import Pipeline

_FILE = "costs.json"


class BoxMeasured(Struct, forbid_unknown_fields=True, frozen=True):
    """What a box was measured to cost: microseconds a row, rows out per row in; `of` tells the box's query."""

    cost_us: Amount
    selectivity: Amount
    rows: Amount
    of: int


Costs = dict[str, BoxMeasured]


def measured(pipeline: Pipeline, found: Mapping[str, tuple[float, float, int]]) -> Costs:
    """Costs, selectivities and numbers of rows, as they are stored."""
    return {name: BoxMeasured(*figures, _query(pipeline, name)) for name, figures in found.items()}


def store(pipeline: Pipeline, costs: Costs) -> None:
    """Keep what was measured for plans and runs of the same boxes."""
    home(pipeline.checkpoint).replace(_FILE, encode(costs).encode())


def stored(pipeline: Pipeline) -> Costs:
    """What was measured of these boxes as they are now; nothing where there is no checkpoint yet."""
    content = home(pipeline.checkpoint).read(_FILE) if pipeline.checkpoint else None
    try:
        costs: Costs = {} if content is None else decode(content, Costs)
    except ValueError:  # damaged: measured again
        return {}
    return {name: one for name, one in costs.items() if name in pipeline.boxes and one.of == _query(pipeline, name)}


def known(pipeline: Pipeline) -> Pipeline:
    """A network with the costs that were measured of it before, if it needs them; all else as it is."""
    return with_costs(pipeline, reached(pipeline)) if pipeline.dropping.network and pipeline.unmeasured else pipeline


def reached(pipeline: Pipeline) -> Costs:
    """What is stored, if the checkpoint can be reached: without it a pipeline can be planned all the same."""
    try:
        return stored(pipeline)
    except (JettisonError, OSError):
        return {}


def with_costs(pipeline: Pipeline, costs: Costs) -> Pipeline:
    """The pipeline with measured costs, unless the file states all or one was not measured: units are never mixed."""
    if not pipeline.unmeasured or set(pipeline.boxes) - set(costs):
        return pipeline
    boxes = {}
    for name, box in pipeline.boxes.items():
        found = costs[name].selectivity if box.selectivity is None else box.selectivity
        kind = "map" if found > 1 and box.kind is None and pipeline.graph.boxes[name].kind == "filter" else box.kind
        boxes[name] = msgspec.structs.replace(box, cost=costs[name].cost_us, selectivity=found, kind=kind)
    return msgspec.structs.replace(pipeline, boxes=boxes)


def _query(pipeline: Pipeline, name: str) -> int:
    """A number that changes with what a box does."""
    box = pipeline.boxes[name]
    said = [box.reads, " ".join(box.sql.split()), box.answers, box.window, box.group, box.watermark]
    return zlib.crc32(encode(said).encode())
