"""Group drops on Spark: a row's group and pane lead through one table to its threshold, before the row is parsed.

The table is made from the plan once a micro-batch, where it is read: the named groups in the order of
their keys, and for every bucket of keys where in that order it begins. A row then costs one hash of its group and a
few array reads, however many groups are named, and a new plan needs no restart and no join. Before a join, keys that are
not named are decided as a whole, by a hash that both sides share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.errors import refuse
from jettison.policies.groups.group_keys import GROUP_BITS, PANE_BITS, PANES
from jettison.policies.groups.group_setting import JOIN_SALT, GroupSpec
from jettison.policies.groups.pane_book import IDLE_SAMPLE, KeptGroups
from jettison.spark import validate
from jettison.spark.drop_point import DropPoint, identity_hash, is_late, late_before_us, salted, sound_share
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.random_mechanism import threshold, weight
from jettison.spark.mechanisms.window_mechanism import floor_divided
from jettison.spark.named_column import with_name
from jettison.spark.validate import as_column

_TIME, _PANE, _KEY, _START, _SLOT = "jt_time", "jt_pane", "jt_key", "jt_start", "jt_slot"
WHOLE = "jt_whole"
"""Column that says of a kept row before a join whether its key was decided as a whole."""
_TABLE, _KEYS, _STARTS = "jt_table", "jt_keys", "jt_starts"
_PANES, _THRESHOLDS = "jt_panes", "jt_thresholds"
MOST_LISTED, MOST_TRACKED = 2_000, 8_000
"""Groups of a micro-batch that are reported, and those that are counted to find them."""
_SPARE_BITS = 3  # eight buckets a group
_PROBES = 6  # of a million groups, less than one shares its bucket with six before it


class GroupMechanism(Mechanism):
    """Executes `GroupDrop`: each named group of a pane has a share of its own, all others of the pane share one.

    Groups are told apart by the upper half of their hashes.

    Parameters
    ----------
    spec
        What a row's group and time are.
    """

    schema = (
        "struct<starts_us: array<bigint>, others: array<double>, groups: array<array<bigint>>, "
        "keeps: array<array<double>>, new_keep_fraction: double, late_factor: double, late_after_s: double>"
    )

    learns_from = (_KEY, _TIME)

    def __init__(self, spec: GroupSpec) -> None:
        self._groups, self._time, self._pane_us = spec.columns, spec.time, spec.pane_us
        self._value = spec.value
        self.stays = (*spec.columns, spec.time) if spec.dropped_rows_stay else ()

    def check(self, rows: DataFrame, point: DropPoint) -> None:
        for name in self.stays:
            if not isinstance(name, str):
                hint = "dropped rows keep these columns, by their names, to be counted"
                expected = "`group` and `time` must be names of columns where `exact_counts` is on"
                refuse(expected, repr(name), where=point.place, hint=hint)
            validate.present(rows, name, "group and time, with exact_counts,", where=point.place)
        for group in self._groups:
            validate.expression(rows, group, "group", where=point.place)
        if self._value is not None:
            validate.expression(rows, self._value, "value", where=point.place)
        kind = validate.expression(rows, self._time, "time", where=point.place)
        validate.zoned(kind, self._time, where=point.place)

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """The table of named groups, and the thresholds and weights of every slot.

        Slots are the named groups, then the other groups of each pane, then panes that are not named; and all of them
        once more for late rows.
        """
        named = _named(setting, self._pane_us)
        panes = F.transform(setting["starts_us"], lambda start: floor_divided(start, self._pane_us))
        return {
            "late_before_us": late_before_us(setting, now_us),
            "table": with_name(named, lambda entries: _table(entries, setting, panes)),
        }

    def helpers(self, rows: DataFrame, point: DropPoint, plan: Column) -> list[dict[str, Column]]:
        """Pane and key of the row, and from them its slot.

        The table and its arrays too: to get one out of the plan makes a new object each time.
        """
        table = F.col(_TABLE)
        # While everything is kept, only a sample is looked at: it tells which groups to thin when the need arises.
        look = ~table["everything"] | (identity_hash(rows, point) <= threshold(F.lit(IDLE_SAMPLE)))
        time, pane = F.when(look, F.unix_micros(as_column(self._time))), floor_divided(F.col(_TIME), self._pane_us)
        group = F.xxhash64(*map(as_column, self._groups))
        key = F.when(F.col(_PANE).isNotNull(), _key(group, F.col(_PANE)))
        arrays = {_KEYS: table["keys"], _STARTS: table["starts"], _PANES: table["panes"]}
        start = {_START: F.get(F.col(_STARTS), _bucket(F.col(_KEY), table["shift"], table["half"]))}
        found = {_SLOT: _slot(table), _THRESHOLDS: table["thresholds"]}
        return [{_TABLE: plan["table"]}, {_TIME: time}, {_PANE: pane}, {_KEY: key, **arrays}, start, found]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        table, slot = F.col(_TABLE), F.col(_SLOT)
        if point.arrival:
            late = is_late(rows, point.arrival, plan)
            slot = slot + F.when(late, table["late"]).otherwise(F.lit(0))
        keep = table["everything"] | (self._hash(rows, point, table) <= F.get(F.col(_THRESHOLDS), slot))
        return keep, F.when(~table["everything"], F.get(table["weights"], slot))

    def _hash(self, rows: DataFrame, point: DropPoint, table: Column) -> Column:
        return identity_hash(rows, point)

    def learned(self, keep: Column) -> dict[str, Column]:
        """The groups with the most rows among those kept, the latest time, and how the values vary."""
        key = F.when(keep, F.col(_KEY))
        found = {
            "groups": F.call_function("approx_top_k", key, F.lit(MOST_LISTED), F.lit(MOST_TRACKED)),
            "grouped": F.count(key),
            "groups_until_us": F.max(F.when(keep, F.col(_TIME))),
        }
        if self._value is not None:
            value = F.when(key.isNotNull(), as_column(self._value).cast("double"))
            found |= {"value_mean": F.avg(value), "value_deviation": F.stddev_samp(value)}
        return found

    def read(self, observed: Mapping[str, Any]) -> KeptGroups | None:
        if observed.get("groups_until_us") is None:
            return None
        listed = [(entry["item"], entry["count"]) for entry in observed["groups"] or () if entry["item"] is not None]
        keys, kept = zip(*listed, strict=True) if listed else ((), ())
        mean, deviation = observed.get("value_mean"), observed.get("value_deviation")
        variation = abs(deviation / mean) if mean and deviation is not None else None
        return KeptGroups(keys, kept, observed["grouped"], observed["groups_until_us"], variation)


class JoinMechanism(GroupMechanism):
    """Executes `GroupDrop` on one side of a join.

    The same light key has the same hash on both sides and in all panes, so of two rows with shares p and q both are kept
    with probability min(p, q); `jf.pair_weight` is its inverse.
    """

    def marks(self, plan: Column) -> dict[str, Column]:
        """Whether the row's key was decided as a whole."""
        return {WHOLE: F.coalesce(~plan["table"]["everything"] & _is_whole(plan["table"]), F.lit(False))}

    def _hash(self, rows: DataFrame, point: DropPoint, table: Column) -> Column:
        group = (
            F.col(_KEY)
            .bitwiseXOR(F.shiftleft(_residue(F.col(_KEY)), 64 - PANE_BITS))
            .bitwiseAND(F.lit(-PANES).cast("bigint"))
        )
        return F.when(_is_whole(table), F.xxhash64(salted(JOIN_SALT, point.token), group)).otherwise(
            identity_hash(rows, point)
        )


def _key(hashed: Column, pane: Column) -> Column:
    """`group_keys.packed` as a column, from the whole hash."""
    residue = _residue(pane)
    mixed = hashed.bitwiseAND(F.lit(-(1 << GROUP_BITS))).bitwiseOR(residue)
    return mixed.bitwiseXOR(F.shiftleft(residue, 64 - PANE_BITS))


def _residue(pane: Column) -> Column:
    return pane.bitwiseAND(F.lit(PANES - 1).cast("bigint"))


def _named(setting: Column, pane_us: int) -> Column:
    """Key and share of every named group, in the order of keys."""
    starts, groups, keeps = setting["starts_us"], setting["groups"], setting["keeps"]

    def of_pane(place: Column) -> Column:
        pane = floor_divided(F.get(starts, place), pane_us)
        return F.zip_with(
            F.get(groups, place),
            F.get(keeps, place),
            lambda group, keep: F.struct(_key(F.shiftleft(group, GROUP_BITS), pane).alias("key"), keep.alias("keep")),
        )

    places = F.filter(F.sequence(F.lit(0), F.size(starts)), lambda place: place < F.size(starts))
    # `array_sort` would compare by an expression that is interpreted for every pair.
    return F.sort_array(F.flatten(F.transform(places, of_pane)))


def _table(entries: Column, setting: Column, panes: Column) -> Column:
    """Everything that a row looks up, as one struct; `entries` are in the order of their keys."""
    factor = sound_share(setting["late_factor"])
    residues = F.sequence(F.lit(0).cast("bigint"), F.lit(PANES - 1).cast("bigint"))
    pane_at = F.transform(residues, lambda residue: F.array_position(F.transform(panes, _residue), residue))
    others = F.transform(
        pane_at,
        lambda place: F.coalesce(F.get(setting["others"], place.cast("int") - 1), setting["new_keep_fraction"]),
    )
    by_entry = F.transform(entries, lambda entry: entry["keep"])
    in_time = F.transform(F.concat(by_entry, others, F.array(setting["new_keep_fraction"])), sound_share)
    bits = (F.ceil(F.log2(F.greatest(F.size(entries), F.lit(1)))) + _SPARE_BITS).cast("int")

    def fields(shares: Column) -> Column:
        return F.struct(
            (~F.exists(shares, lambda share: share < 1.0)).alias("everything"),
            F.size(entries).alias("named"),
            (F.size(entries) + PANES + 1).alias("late"),
            F.transform(entries, lambda entry: entry["key"]).alias("keys"),
            F.transform(pane_at, lambda place: F.get(panes, place.cast("int") - 1)).alias("panes"),
            F.transform(shares, threshold).alias("thresholds"),
            F.transform(shares, weight).alias("weights"),
            (64 - bits).alias("shift"),
            _power_of_two(bits - 1).alias("half"),
            _bucket_starts(entries, bits).alias("starts"),
        )

    return with_name(F.concat(in_time, F.transform(in_time, lambda share: share * factor)), fields)


def _bucket_starts(entries: Column, bits: Column) -> Column:
    """For every bucket, how many entries lie in the buckets before it."""
    count = F.size(entries)

    def bucket(place: Column) -> Column:
        return _bucket(F.get(entries, place)["key"], 64 - bits, _power_of_two(bits - 1))

    def repeated(i: Column) -> Column:
        # That number is i for the buckets after that of entry i - 1, up to that of entry i.
        until = F.when(i < count, bucket(i)).otherwise(_power_of_two(bits) - 1)
        since = F.when(i > 0, bucket(i - 1)).otherwise(F.lit(-1))
        return F.array_repeat(i, until - since)

    return F.flatten(F.transform(F.sequence(F.lit(0), count), repeated))


def _bucket(key: Column, shift: Column, half: Column) -> Column:
    return (F.call_function("shiftright", key, shift) + half).cast("int")


def _power_of_two(exponent: Column) -> Column:
    return F.call_function("shiftleft", F.lit(1), exponent)


def _slot(table: Column) -> Column:
    """Where thresholds and weights of the row stand. Null without a plan."""
    key, pane, start = F.col(_KEY), F.col(_PANE), F.col(_START)
    residue = _residue(pane).cast("int")
    found = F.when(F.get(F.col(_KEYS), start) == key, start)
    for probe in range(1, _PROBES):
        found = found.when(F.get(F.col(_KEYS), start + probe) == key, start + probe)
    of_pane = found.otherwise(table["named"] + residue)
    # A pane 64 before or after a named one has the same residue.
    return F.when(F.get(F.col(_PANES), residue) == pane, of_pane).otherwise(table["named"] + PANES)


def _is_whole(table: Column) -> Column:
    """Whether a key is light: not named in a pane that is. In a pane of which nothing is known any key may be heavy."""
    return (F.col(_SLOT) >= table["named"]) & (F.col(_SLOT) < table["named"] + PANES)
