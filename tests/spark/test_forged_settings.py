"""Settings that a plan can hold although no policy made them: their rows are kept, with weight 1.

A plan's file may be damaged or forged and still be JSON with a checksum that fits. Each row here has a plan of its own,
so that all cases run at once.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.network.range_setting import RangeDrop
from jettison.policies.priority.priority_setting import LevelDrop, LevelSpec
from jettison.policies.regions.build import Sample, build
from jettison.policies.regions.region_setting import RegionDrop, fingerprint
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.source.space import CELLS, Attribute, Space
from jettison.spark.drop_point import DropPoint
from jettison.spark.guard import guarded
from jettison.spark.mechanisms import Mechanism, PriorityMechanism, RandomMechanism, RegionMechanism
from jettison.spark.mechanisms.range_mechanism import RangeMechanism
from sifter_cases import random_queries, setting_of

pytestmark = pytest.mark.spark

SPACE = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
ROWS = 200
NAN = float("nan")
AGES = [NAN, -0.5, -1e300, 1e300, math.inf, -math.inf, None]
WILD = [NAN, -0.5, 1.5, 1e300, -1e300, math.inf, -math.inf, None, "much"]


def outcome(
    spark: SparkSession, mechanism: Mechanism, settings: list[dict[str, Any]]
) -> list[tuple[int, float, float]]:
    """Rows kept of each setting's, and their smallest and largest weights."""
    cases = spark.createDataFrame([(i, json.dumps(one)) for i, one in enumerate(settings)], "case long, text string")
    setting = F.from_json("text", f"points struct<rows: {mechanism.schema}>")["points"]["rows"]
    now = F.unix_micros(F.current_timestamp())
    fields = {"now_us": now, "look_every": F.lit(16).cast("bigint"), **mechanism.plan_fields(setting, now)}
    plans = cases.select("case", F.struct(*[column.alias(name) for name, column in fields.items()]).alias("plan"))
    ids = spark.range(ROWS).selectExpr("id as row", "(id % 20) / 20.0d as x", "(id % 7) / 7.0d as y")
    at = F.current_timestamp() - F.make_interval(secs=F.when(F.col("row") % 2 == 0, 3600).otherwise(0))
    # Made once a case, as it is once a micro-batch.
    rows = plans.localCheckpoint().crossJoin(ids).withColumns({"at": at, "id": F.col("case") * ROWS + F.col("row")})
    kept = guarded(rows, DropPoint("rows", ("id",), arrival="at", observed=False), mechanism, F.col("plan"))
    return counted(kept, len(settings))


def counted(kept: DataFrame, cases: int) -> list[tuple[int, float, float]]:
    by_case = kept.groupBy("case").agg(F.count("*"), F.min("jt_weight"), F.max("jt_weight")).collect()
    found = {row[0]: (row[1], row[2], row[3]) for row in by_case}
    return [found.get(case, (0, 0.0, 0.0)) for case in range(cases)]


def as_json(setting: Any) -> dict[str, Any]:
    names = [name for name in setting.__slots__]
    return {"kind": setting.kind} | {name: getattr(setting, name) for name in names}


def sound_regions() -> dict[str, Any]:
    queries = random_queries(np.random.default_rng(1), SPACE, 5)
    points = np.random.default_rng(2).random((200, 2))
    partition = build(queries, Sample.of(queries, points), regions=6, partitioning="grid").partition
    shares = np.full(partition.regions + 1, 0.5)
    return as_json(setting_of(SPACE, partition, shares, late=(shares / 2).tolist(), late_after_s=60.0))


def wrapped(*settings: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [{"points": {"rows": one}} for one in settings]


def test_regions_that_make_no_sense_keep_their_rows(spark):
    sound = sound_regions()
    cuts, cells, count = sound["cuts"], sound["cells"], len(sound["keep"])
    far = [1, 2**31 - 1]
    forged = [
        *({"keep": [wild] * count, "late_keep": [wild] * count} for wild in WILD),
        *({"cuts": wrong} for wrong in (None, [], [cuts[0]], [*cuts, cuts[0]], [cuts[0][::-1], cuts[1]], [[], []])),
        {"cuts": [far, far], "cells": [0] * 9},
        {"cuts": [[-(2**31), 2**31 - 1], [1, CELLS + 1]], "cells": [0] * 9},
        {"cuts": [[1, None, CELLS + 1], [1, CELLS + 1]], "cells": [0] * 12},
        {"cuts": [list(range(1, 20_000))] * 2},
        *({"cells": wrong} for wrong in (None, [], [10**9] * len(cells), [-1] * len(cells), [None] * len(cells), [0])),
        *({"missing": wrong} for wrong in (None, [], [0], [0] * 300)),
        *({"space": wrong} for wrong in (None, 7, 1e300, "x")),
        {"keep": None, "late_keep": None},
        {"keep": [], "late_keep": []},
    ]
    found = outcome(spark, RegionMechanism(SPACE), wrapped(sound, *({**sound, **one} for one in forged)))
    kept, lightest, heaviest = found[0]
    assert 0.2 * ROWS < kept < 0.6 * ROWS
    assert (lightest, heaviest) == (2.0, 4.0)
    assert [(one, case) for one, case in zip(found[1:], forged, strict=True) if one != (ROWS, 1.0, 1.0)] == []


def test_one_share_that_makes_no_sense_spares_its_region_alone(spark):
    sound = sound_regions()
    some = [{**sound, "keep": [wild, *sound["keep"][1:]]} for wild in WILD if wild != "much"]
    for kept, lightest, heaviest in outcome(spark, RegionMechanism(SPACE), wrapped(*some)):
        assert 0.2 * ROWS < kept < 0.8 * ROWS
        assert (lightest, heaviest) == (1.0, 4.0)


def test_an_age_that_makes_no_sense_makes_no_row_late(spark):
    sound = sound_regions()
    some = [{**sound, "late_after_s": wild} for wild in AGES]
    for kept, lightest, heaviest in outcome(spark, RegionMechanism(SPACE), wrapped(*some)):
        assert 0.3 * ROWS < kept < 0.7 * ROWS
        assert (lightest, heaviest) == (2.0, 2.0)


def test_priorities_that_make_no_sense_keep_their_rows(spark):
    sound = as_json(LevelDrop(0.5, (0.5, 0.5), 0.25, (0.25, 0.25), 60.0))
    forged = [
        *({"keeps": [wild] * 2, "late_keeps": [wild] * 2} for wild in WILD),
        *({"keeps": wrong, "late_keeps": wrong} for wrong in (None, [], "much")),
    ]
    found = outcome(
        spark, PriorityMechanism(LevelSpec(("x < 0.5",))), wrapped(sound, *({**sound, **one} for one in forged))
    )
    kept, lightest, heaviest = found[0]
    assert 0.2 * ROWS < kept < 0.6 * ROWS
    assert (lightest, heaviest) == (2.0, 4.0)
    assert [(one, case) for one, case in zip(found[1:], forged, strict=True) if one != (ROWS, 1.0, 1.0)] == []


def test_ranges_that_make_no_sense_keep_their_rows(spark):
    sound = as_json(RangeDrop("x", [(0.0, 0.25), (0.5, 0.75)], 0.5))
    tenths = [[i / 10, (i + 1) / 10] for i in range(10)]
    ends = [[[wild, 0.5]] for wild in WILD[:-1] if wild not in (-0.5, -1e300)]
    ends += [[[0.0, wild]] for wild in (NAN, -0.5, math.inf, -1e300, None)]
    forged = [
        *(
            {"drop": wrong}
            for wrong in [*ends, None, [], [[]], [[0.5]], [[0.0, 0.3, 0.5]], [None], tenths, [[0.5, 0.5]]]
        ),
        *({"drop": wrong} for wrong in ([[0.0, 0.6], [0.5, 0.9]], [[0.5, 0.9], [0.0, 0.2]])),
        *({"keep_fraction": wild} for wild in WILD if wild != "much"),
    ]
    found = outcome(spark, RangeMechanism("x"), wrapped(sound, *({**sound, **one} for one in forged)))
    assert found[0] == (ROWS / 2, 1.0, 1.0)
    assert [(one, case) for one, case in zip(found[1:], forged, strict=True) if one != (ROWS, 1.0, 1.0)] == []


@pytest.mark.parametrize("mechanism", [RandomMechanism(), RangeMechanism("x")], ids=["alone", "in a network"])
def test_random_drops_that_make_no_sense_keep_their_rows(spark, mechanism):
    sound = {"kind": "random", "keep_fraction": 0.5, "late_keep_fraction": 0.25, "late_after_s": 60.0}
    forged = [{"keep_fraction": wild, "late_keep_fraction": wild} for wild in WILD if wild != "much"]
    ages = [{"late_after_s": wild} for wild in AGES]
    found = outcome(spark, mechanism, wrapped(sound, *({**sound, **one} for one in [*forged, *ages]), None, {}))
    assert found[0][1:] == (2.0, 4.0)
    assert [(one, case) for one, case in zip(found[1:], forged, strict=False) if one != (ROWS, 1.0, 1.0)] == []
    for one in found[len(forged) + 1 : -2]:
        assert 0.3 * ROWS < one[0] < 0.7 * ROWS
        assert one[1:] == (2.0, 2.0)
    assert found[-2:] == [(ROWS, 1.0, 1.0)] * 2, "a plan without the drop point, or with nothing about it"


@pytest.mark.parametrize("mechanism", [RandomMechanism(), RangeMechanism("x")], ids=["alone", "in a network"])
def test_a_late_share_that_makes_no_sense_spares_late_rows_alone(spark, mechanism):
    sound = {"kind": "random", "keep_fraction": 0.5, "late_after_s": 60.0}
    some = [{**sound, "late_keep_fraction": wild} for wild in WILD if wild not in (None, "much")]
    for kept, lightest, heaviest in outcome(spark, mechanism, wrapped(*some)):
        assert 0.65 * ROWS < kept < 0.85 * ROWS
        assert (lightest, heaviest) == (1.0, 2.0)


def test_nothing_that_is_refused_here_can_be_made(spark):
    for wild in WILD[:-2]:
        with pytest.raises(ValueError, match="Hint"):
            RegionDrop(**{**{k: v for k, v in sound_regions().items() if k != "kind"}, "late_after_s": -abs(wild)})
        with pytest.raises(ValueError, match="Hint"):
            RangeDrop("x", [(0.0, 0.5)], wild)
        with pytest.raises(ValueError, match="Hint"):
            RandomDrop(wild)
    for late in (RandomDrop(0.5, 0.5, 1e9), GroupDrop(late_factor=0.5, late_after_s=1e9)):
        with pytest.raises(ValueError, match="late_after_s"):
            replace(late, late_after_s=1.1e9)
    assert fingerprint(SPACE) == sound_regions()["space"]
