"""NEXMark's events in native Spark expressions: persons, auctions and bids, each a function of its number.

After the public specification: of 100 events 2 are persons, 6 auctions and 92 bids. Half of the bids go to a hot auction,
three quarters come from a hot bidder and three quarters of the auctions from a hot seller, which is one of the last hundred.
Others spread over the last 100 auctions and 1,000 persons. Prices are 10 to the power of a uniform number, times 100. Events
come out of order within groups.

Departures: randomness is a hash of the event's number, so that the truth can be computed in batch from the numbers alone;
texts are shorter, and one letter tells the kind of an event; event times follow the schedule, because rates change.

References
----------
Tucker, Tufte, Papadimos, Maier: NEXMark, a Benchmark for Queries over Data Streams; `nexmark/nexmark` (Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from jettison.lab.demo.schedule import EVENT_EPOCH_S, Schedule
from jettison.lab.prove import prepared

PERSONS, AUCTIONS, EVENTS = 2, 6, 100
HOT_AUCTIONS, HOT_BIDDERS, HOT_SELLERS = 2, 4, 4
"""One event in so many is not for a hot one."""
_HOT_AMONG = 100
ACTIVE_PERSONS, OPEN_AUCTIONS, _LEAD = 1_000, 100, 10
_FIRST_ID = 1_000
OUT_OF_ORDER = 1_000
"""Size of the groups within which events change their order."""
_STEP = 953  # of the order within a group; it has no divisor in common with the size

BID, AUCTION, PERSON = (f'{{"kind":"{kind}"%' for kind in "BAP")
"""Patterns of SQL's LIKE for the kinds."""
TIME = "timestamp_millis(cast(substring(value, 20, 13) as bigint))"
"""SQL that reads the time out of an event, and the auction, the bidder and the price out of a bid."""
BID_AUCTION = "substring_index(substring(value, 44, 20), ',', 1)"
BIDDER = "substring_index(substring_index(value, '\"bidder\":', -1), ',', 1)"
PRICE = "cast(substring_index(substring_index(value, '\"price\":', -1), ',', 1) as bigint)"


def write(spark: SparkSession, folder: Path, schedule: Schedule) -> None:
    """Write the events of a schedule."""
    prepared.write(spark, folder, schedule, event)


def event(place: Column, arrived_us: Column, between_us: Column) -> Column:
    """The text of the event that comes at this place: one of its group, with the time of its own number."""
    group = F.floor(place / OUT_OF_ORDER) * OUT_OF_ORDER
    number = (group + F.pmod(place * _STEP, F.lit(OUT_OF_ORDER))).cast("bigint")
    time_us = F.greatest(arrived_us + (number - place) * between_us, F.lit(0))
    return event_text(number, F.floor(time_us / 1000) + EVENT_EPOCH_S * 1000)


def event_text(number: Column, time_ms: Column) -> Column:
    """The text of the event with this number."""
    place = F.pmod(number, F.lit(EVENTS))
    kind = F.when(place < PERSONS, "P").when(place < PERSONS + AUCTIONS, "A").otherwise("B")
    text = F.when(kind == "P", _person(number)).when(kind == "A", _auction(number)).otherwise(_bid(number))
    return F.concat(F.lit('{"kind":"'), kind, F.lit('","time":'), time_ms.cast("bigint").cast("string"), text)


def last_person(number: Column) -> Column:
    """The newest person at this event, from 0."""
    place = F.least(F.pmod(number, F.lit(EVENTS)), F.lit(PERSONS - 1))
    return _epoch(number) * PERSONS + place


def last_auction(number: Column) -> Column:
    """The newest auction at this event, from 0; -1 before the first."""
    place = F.pmod(number, F.lit(EVENTS))
    within = F.when(place < PERSONS, F.lit(-1)).otherwise(F.least(place - PERSONS, F.lit(AUCTIONS - 1)))
    return _epoch(number) * AUCTIONS + within


def price(number: Column, seed: int) -> Column:
    """A price in cents, from 100 to 100 million."""
    uniform = (_random(number, seed, 2**30) + 0.5) / 2**30
    return F.round(F.pow(F.lit(10.0), uniform * 6.0) * 100.0).cast("bigint")


def _bid(number: Column) -> Column:
    hot = (F.floor(F.greatest(last_auction(number), F.lit(0)) / _HOT_AMONG) * _HOT_AMONG).cast("bigint")
    auction = F.when(_random(number, 1, HOT_AUCTIONS) > 0, hot).otherwise(_open_auction(number, 2))
    second = (F.floor(last_person(number) / _HOT_AMONG) * _HOT_AMONG + 1).cast("bigint")
    bidder = F.when(_random(number, 3, HOT_BIDDERS) > 0, second).otherwise(_active_person(number, 4))
    channel = F.element_at(F.array(*map(F.lit, ("Google", "Facebook", "Baidu", "Apple"))), _random(number, 6, 4) + 1)
    parts = {"auction": auction + _FIRST_ID, "bidder": bidder + _FIRST_ID, "price": price(number, 5)}
    return _fields(parts, {"channel": channel, "extra": F.sha1(number.cast("string"))})


def _auction(number: Column) -> Column:
    hot = (F.floor(last_person(number) / _HOT_AMONG) * _HOT_AMONG).cast("bigint")
    seller = F.when(_random(number, 11, HOT_SELLERS) > 0, hot).otherwise(_active_person(number, 12))
    parts = {
        "id": last_auction(number) + _FIRST_ID,
        "seller": seller + _FIRST_ID,
        "category": _random(number, 13, 5) + 10,
        "initial": price(number, 14),
        "reserve": price(number, 14) + price(number, 15),
    }
    return _fields(parts, {"item": F.sha1(number.cast("string")), "description": F.sha2(number.cast("string"), 512)})


def _person(number: Column) -> Column:
    states = F.array(*map(F.lit, ("AZ", "CA", "ID", "OR", "WA", "WY")))
    state = F.element_at(states, _random(number, 21, 6) + 1)
    names = {"name": F.substring(F.sha1(number.cast("string")), 1, 14), "state": state}
    return _fields({"id": last_person(number) + _FIRST_ID}, {**names, "extra": F.sha2(number.cast("string"), 256)})


def _open_auction(number: Column, seed: int) -> Column:
    last = F.greatest(last_auction(number), F.lit(0))
    least = F.greatest(last - OPEN_AUCTIONS, F.lit(0))
    return least + F.pmod(F.xxhash64(number, F.lit(seed)), last - least + 1 + _LEAD)


def _active_person(number: Column, seed: int) -> Column:
    persons = last_person(number) + 1
    active = F.least(persons, F.lit(ACTIVE_PERSONS))
    return persons - active + F.pmod(F.xxhash64(number, F.lit(seed)), active + _LEAD)


def _epoch(number: Column) -> Column:
    return F.floor(number / EVENTS)


def _random(number: Column, seed: int, below: int) -> Column:
    return F.pmod(F.xxhash64(number, F.lit(seed)), F.lit(below)).cast("int")


def _fields(numbers: dict[str, Column], words: dict[str, Column]) -> Column:
    parts = [F.concat(F.lit(f',"{name}":'), of.cast("bigint").cast("string")) for name, of in numbers.items()]
    parts += [F.concat(F.lit(f',"{name}":"'), of, F.lit('"')) for name, of in words.items()]
    return F.concat(*parts, F.lit("}"))
