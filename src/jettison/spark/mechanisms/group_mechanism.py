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

from jettison.core.documents import field_types
from jettison.policies.groups.group_keys import GROUP_BITS, PANE_BITS, PANES
from jettison.policies.groups.group_setting import JOIN_SALT, GroupDrop, GroupSpec
from jettison.policies.groups.pane_book import IDLE_SAMPLE, KeptGroups
from jettison.spark import validate
from jettison.spark.drop_point import DropPoint, identity_hash, is_late, late_before_us, salted, sound_share
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.random_mechanism import threshold, weight
from jettison.spark.mechanisms.setting_schema import schema_of
from jettison.spark.mechanisms.window_mechanism import floor_divided
from jettison.spark.named_column import with_name
from jettison.spark.validate import as_column

_TIME, _PANE, _PLACE, _KEY, _START, _SLOT = "jt_time", "jt_pane", "jt_place", "jt_key", "jt_start", "jt_slot"
_TABLE, _HASH, _PASSES = "jt_table", "jt_hash", "jt_passes"
WHOLE = "jt_whole"
"""Column that says of a kept row before a join whether its key was decided as a whole."""
MOST_LISTED, MOST_TRACKED = 2_000, 8_000
"""Groups of a micro-batch that are reported, and those that are counted to find them."""
_SPARE_BITS = 3  # eight buckets a group
_PROBES = 6  # of a million groups, less than one shares its bucket with six before it
_NO_KEY = 1 << PANE_BITS  # keys have zeros between the pane's bits and the group's

# The table of a plan is one array of whole numbers, because each array that a row looks into makes an object for the row.
# It begins with these, then has
#   the number of each pane, by its residue,
#   the highest threshold that a row of that pane can meet, and last that of panes which are not named,
#   for every bucket of keys, where in the table its keys begin,
#   the keys of the named groups in order, and some that are none, for the last probes to find,
#   the threshold of every slot: of the named groups, of other groups of each pane, of panes that are not named;
#   and all of these thresholds again for late rows.
# A row's slot is where its key stands or would stand if all slots had one.
_KEEPS_ALL, _SHIFT, _BUCKETS_AT, _NAMED, _OTHERS_AT = range(5)
_PANES_AT = 5
_CEILINGS_AT = _PANES_AT + PANES
_STARTS_AT = _CEILINGS_AT + PANES + 1


class GroupMechanism(Mechanism):
    """Executes `GroupDrop`: each named group of a pane has a share of its own, all others of the pane share one.

    Groups are told apart by the upper half of their hashes.

    Parameters
    ----------
    spec
        What a row's group and time are.
    """

    schema = schema_of(
        field_types(GroupDrop),
        *("starts_us", "others", "groups", "keeps"),
        *("new_keep_fraction", "late_factor", "late_after_s"),
    )

    learns_from = (_KEY, _TIME)
    _whole = False

    def __init__(self, spec: GroupSpec) -> None:
        self._groups, self._time, self._pane_us = spec.columns, spec.time, spec.pane_us
        self._value = spec.value
        self.stays = (*spec.columns, spec.time) if spec.dropped_rows_stay else ()

    def check(self, rows: DataFrame, point: DropPoint) -> None:
        validate.since(rows.sparkSession, (4, 1), "a policy that names groups (`approx_top_k`)", where=point.place)
        for group in self._groups:
            validate.expression(rows, group, "group", where=point.place)
        if self._value is not None:
            validate.expression(rows, self._value, "value", where=point.place)
        kind = validate.expression(rows, self._time, "time", where=point.place)
        validate.zoned(kind, self._time, where=point.place)
        if self.stays:
            self.stays = self._columns_read(rows, point)

    def _columns_read(self, rows: DataFrame, point: DropPoint) -> tuple[str, ...]:
        """Names of the columns that dropped rows keep, to be counted."""
        given = [*(("group", group) for group in self._groups), ("time", self._time)]
        return tuple(
            name
            for argument, column in given
            for name in validate.columns_read(rows, column, argument, where=point.place)
        )

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        """The table that rows look into, and the weight of every slot."""
        named = _named(setting, self._pane_us)
        panes = F.transform(setting["starts_us"], lambda start: floor_divided(start, self._pane_us))
        return {
            "late_before_us": late_before_us(setting, now_us),
            "groups": with_name(named, lambda entries: _tables(entries, setting, panes, whole=self._whole)),
        }

    def helpers(self, rows: DataFrame, point: DropPoint, plan: Column) -> list[dict[str, Column]]:
        """Pane and key of the row, and from them its slot.

        The group is the expensive part, so it is not even read where the hash alone decides: no group of the pane may have
        a threshold as high.
        """
        hashed = identity_hash(rows, point)
        # While everything is kept, only a sample is looked at: it tells which groups to thin when the need arises.
        look = (_cell(_KEEPS_ALL) == 0) | (F.col(_HASH) <= threshold(F.lit(IDLE_SAMPLE)))
        pane = floor_divided(F.col(_TIME), self._pane_us)
        residue = _residue(F.col(_PANE)).cast("int")
        # A pane 64 before or after a named one has the same residue.
        place = F.when(_cell(residue + _PANES_AT) == F.col(_PANE), residue).otherwise(F.lit(PANES))
        passes = F.col(_HASH) <= _cell(F.col(_PLACE) + _CEILINGS_AT)
        reads = F.col(_PASSES) if point.protect is None else F.col(_PASSES) | point.protect
        group = F.xxhash64(*map(as_column, self._groups))
        key = F.when(F.col(_PANE).isNotNull() & F.coalesce(reads, F.lit(True)), _key(group, F.col(_PANE)))
        bucket = F.call_function("shiftright", F.col(_KEY), _cell(_SHIFT).cast("int")) + _cell(_BUCKETS_AT)
        return [
            {_TABLE: plan["groups"]["table"], _HASH: hashed},
            {_TIME: F.when(look, F.unix_micros(as_column(self._time)))},
            {_PANE: pane},
            {_PLACE: place},
            {_PASSES: passes},
            {_KEY: key},
            {_START: _cell(bucket.cast("int")).cast("int")},
            {_SLOT: _slot()},
        ]

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        keeps_all, named, slot = _cell(_KEEPS_ALL) == 1, _cell(_NAMED).cast("int"), F.col(_SLOT)
        if point.arrival:
            late = is_late(rows, point.arrival, plan)
            slot = slot + F.when(late, named + PANES + 1).otherwise(F.lit(0))
        keep = keeps_all | (F.col(_PASSES) & (self._hash(point) <= _cell(slot + named + _PROBES)))
        return keep, F.when(~keeps_all, F.get(plan["groups"]["weights"], slot - _cell(_OTHERS_AT).cast("int") + named))

    def _hash(self, point: DropPoint) -> Column:
        return F.col(_HASH)

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

    _whole = True

    def marks(self, plan: Column) -> dict[str, Column]:
        """Whether the row's key was decided as a whole."""
        return {WHOLE: F.coalesce((_cell(_KEEPS_ALL) == 0) & _is_whole(), F.lit(False))}

    def _hash(self, point: DropPoint) -> Column:
        group = (
            F.col(_KEY)
            .bitwiseXOR(F.shiftleft(_residue(F.col(_KEY)), 64 - PANE_BITS))
            .bitwiseAND(F.lit(-PANES).cast("bigint"))
        )
        return F.when(_is_whole(), F.xxhash64(salted(JOIN_SALT, point.token), group)).otherwise(F.col(_HASH))


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


def _tables(entries: Column, setting: Column, panes: Column, *, whole: bool) -> Column:
    """All that a row looks up, as a struct of `table` and `weights`; `entries` are in the order of their keys."""
    factor = sound_share(setting["late_factor"])
    residues = F.sequence(F.lit(0).cast("bigint"), F.lit(PANES - 1).cast("bigint"))
    pane_at = F.transform(residues, lambda residue: F.array_position(F.transform(panes, _residue), residue))
    others = F.transform(
        pane_at,
        lambda place: F.coalesce(F.get(setting["others"], place.cast("int") - 1), setting["new_keep_fraction"]),
    )
    by_entry = F.transform(entries, lambda entry: sound_share(entry["keep"]))
    by_pane = F.transform(F.concat(others, F.array(setting["new_keep_fraction"])), sound_share)
    bits = (F.ceil(F.log2(F.greatest(F.size(entries), F.lit(1)))) + _SPARE_BITS).cast("int")
    in_time = F.concat(by_entry, by_pane)
    known = {
        "shares": with_name(in_time, lambda early: F.concat(early, F.transform(early, lambda share: share * factor))),
        "by_pane": by_pane,
        # A group that is decided as a whole goes by another hash: that of the row says nothing.
        "highest_named": F.lit(1.0) if whole else F.coalesce(F.array_max(by_entry), F.lit(0.0)),
        "bits": bits,
        "keys_at": _power_of_two(bits) + _STARTS_AT,
    }

    def parts(known: Column) -> Column:
        named, shares = F.size(entries), known["shares"]
        head = {
            _KEEPS_ALL: F.when(F.exists(shares, lambda share: share < 1.0), F.lit(0)).otherwise(F.lit(1)),
            _SHIFT: 64 - known["bits"],
            _BUCKETS_AT: _power_of_two(known["bits"] - 1) + _STARTS_AT,
            _NAMED: named,
            _OTHERS_AT: known["keys_at"] + named,
        }
        table = F.concat(
            F.transform(F.array(*[head[place] for place in sorted(head)]), lambda cell: cell.cast("bigint")),
            F.transform(pane_at, lambda place: F.get(panes, place.cast("int") - 1)),
            F.transform(known["by_pane"], lambda share, place: _ceiling(share, place, known["highest_named"])),
            _bucket_starts(entries, known["bits"], known["keys_at"]),
            F.transform(entries, lambda entry: entry["key"]),
            F.array_repeat(F.lit(_NO_KEY).cast("bigint"), _PROBES),
            F.transform(shares, threshold),
        )
        return F.struct(table.alias("table"), F.transform(shares, weight).alias("weights"))

    return with_name(F.struct(*[column.alias(name) for name, column in known.items()]), parts)


def _ceiling(share: Column, place: Column, highest_named: Column) -> Column:
    """The highest threshold in a pane, from the share of its other groups; in a pane that is not named there are no more."""
    return threshold(F.when(place < PANES, F.greatest(share, highest_named)).otherwise(share))


def _cell(place: Column | int) -> Column:
    return F.get(F.col(_TABLE), F.lit(place) if isinstance(place, int) else place)


def _bucket_starts(entries: Column, bits: Column, keys_at: Column) -> Column:
    """For every bucket, where its keys begin: so many places after the first as entries lie in the buckets before it."""
    count = F.size(entries)

    def bucket(place: Column) -> Column:
        return _bucket(F.get(entries, place)["key"], 64 - bits, _power_of_two(bits - 1))

    def repeated(i: Column) -> Column:
        # These are i for the buckets after that of entry i - 1, up to that of entry i.
        until = F.when(i < count, bucket(i)).otherwise(_power_of_two(bits) - 1)
        since = F.when(i > 0, bucket(i - 1)).otherwise(F.lit(-1))
        return F.array_repeat((i + keys_at).cast("bigint"), until - since)

    return F.flatten(F.transform(F.sequence(F.lit(0), count), repeated))


def _bucket(key: Column, shift: Column, half: Column) -> Column:
    return (F.call_function("shiftright", key, shift) + half).cast("int")


def _power_of_two(exponent: Column) -> Column:
    return F.call_function("shiftleft", F.lit(1), exponent)


def _slot() -> Column:
    """Where the row's key stands in the table or, if it is not named, would stand. Null without a plan."""
    key, place, start = F.col(_KEY), F.col(_PLACE), F.col(_START)
    found = F.when(place == PANES, _cell(_OTHERS_AT).cast("int") + PANES)
    for probe in range(_PROBES):
        found = found.when(_cell(start + probe) == key, start + probe)
    return found.otherwise(_cell(_OTHERS_AT).cast("int") + place)


def _is_whole() -> Column:
    """Whether a key is light: not named in a pane that is. In a pane of which nothing is known any key may be heavy."""
    others_at = _cell(_OTHERS_AT).cast("int")
    return (F.col(_SLOT) >= others_at) & (F.col(_SLOT) < others_at + PANES)
