"""NEXMark's queries 1, 2, 5, 7, 8, 11, 12 and 17, as Structured Streaming can run them in append mode.

Windows are 5 s long in place of 10 s, and stand for the day of query 17, so that a run of a minute has some. Query 8 joins
persons and auctions of a window by counting both for each person, so that the stream is read once. Query 12 takes arrivals
for processing time: the only one that batch can repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.prove.loads import sine, square, step
from jettison.lab.prove.vocabulary import Vocabulary
from jettison.lab.prove.workload import Workload
from jettison.lab.prove.workloads import nexmark_events as events
from jettison.lab.prove.workloads.nexmark_events import AUCTION, BID, BID_AUCTION, BIDDER, PERSON, PRICE, TIME
from jettison.policies.priority.priority_drop import PriorityDrop

WINDOW, SLIDE, GAP = "5 seconds", "1 second", "2 seconds"
_DELAY = "1 second"
_ONE_BID_IN = 50  # of millions
_DOLLARS_TO_EUROS = 0.908


def q1(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """Every bid with its price in euros."""
    return _single(_bids(rows, say, "auction BIGINT, bidder BIGINT, price BIGINT"))


def q2(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """The bids for one auction in 123."""
    return _single(_bids(rows, say, "auction BIGINT, price BIGINT").where("auction % 123 = 0"))


def q5(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """Bids for the auction that has most of them, in a sliding window."""
    bids = _bids(rows, say, "auction BIGINT").withWatermark("time", _DELAY)
    counts = bids.groupBy(F.window("time", WINDOW, SLIDE), "auction").agg(say.count(window="window").alias("n"))
    numbers = counts.select("window", "auction", say.value("n").alias("n"))
    return numbers.groupBy("window").agg(F.max("n").alias("bids")).select(F.col("window.end").alias("end"), "bids")


def q7(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """The highest bid of a window."""
    bids = _bids(rows, say, "price BIGINT").withWatermark("time", _DELAY)
    highest = bids.groupBy(F.window("time", WINDOW)).agg(F.max("price").cast("double").alias("price"))
    return highest.select(F.col("window.end").alias("end"), "price")


def q8(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """New persons who opened auctions in the same window, and how many."""
    others = rows.where(~F.col("value").like(BID))
    parsed = F.from_json("value", "id BIGINT, seller BIGINT").alias("it")
    is_person = F.col("value").like(PERSON).alias("is_person")
    both = others.select(*say.carried, F.expr(TIME).alias("time"), parsed, is_person).select("*", "it.*")
    both = both.withColumn("person", F.when(F.col("is_person"), F.col("id")).otherwise(F.col("seller")))
    windows = both.withWatermark("time", _DELAY).groupBy(F.window("time", WINDOW), "person")
    weight = F.col(say.carried[0]) if say.carried else F.lit(1.0)
    counted = windows.agg(
        F.max("is_person").alias("is_new"),
        F.sum(F.when(~F.col("is_person"), weight)).alias("auctions"),
    )
    return counted.where("is_new and auctions > 0").select(F.col("window.end").alias("end"), "person", "auctions")


def q11(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """Bids of a bidder in each session: with no pause as long as the gap."""
    bids = _bids(rows, say, "bidder BIGINT").withWatermark("time", _DELAY)
    sessions = bids.groupBy(F.session_window("time", GAP), "bidder").agg(say.count().alias("bids"))
    return sessions.select(F.col("session_window.end").alias("end"), "bidder", "bids")


def q12(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """Bids of a bidder in a window of arrivals."""
    bids = _bids(rows, say, "bidder BIGINT", "arrived").withWatermark("arrived", _DELAY)
    counts = bids.groupBy(F.window("arrived", WINDOW), "bidder").agg(say.count(window="window").alias("bids"))
    return counts.select(F.col("window.end").alias("end"), "bidder", "bids")


def q17(rows: DataFrame, say: Vocabulary) -> DataFrame:
    """What there is to say of each auction: bids, prices, and how many of them are low, middle and high."""
    bids = _bids(rows, say, "auction BIGINT, price BIGINT").withWatermark("time", _DELAY)
    auctions = bids.groupBy(F.window("time", WINDOW), "auction")
    weight = F.col(say.carried[0]) if say.carried else F.lit(1.0)
    ranks = {"low": "price < 10000", "middle": "price >= 10000 and price < 1000000", "high": "price >= 1000000"}
    answers = auctions.agg(
        say.count(window="window").alias("bids"),
        say.avg("price", window="window").alias("mean"),
        say.sum("price", window="window").alias("total"),
        F.min("price").alias("least"),
        F.max("price").alias("most"),
        *(F.sum(F.when(F.expr(of), weight)).alias(name) for name, of in ranks.items()),
    )
    names = ("auction", "bids", "mean", "total", "least", "most", *ranks)
    return answers.select(F.col("window.end").alias("end"), *names)


def _bids(rows: DataFrame, say: Vocabulary, schema: str, *more: str) -> DataFrame:
    bids = rows.where(F.col("value").like(BID))
    parsed = F.from_json("value", schema).alias("bid")
    return bids.select(*say.carried, *more, "offset", F.expr(TIME).alias("time"), parsed).select("*", "bid.*")


def _single(bids: DataFrame) -> DataFrame:
    """Each bid is an answer, due in the second in which it comes."""
    end = F.date_trunc("second", "time") + F.expr("interval 1 second")
    return bids.select(end.alias("end"), "offset", (F.col("price") * _DOLLARS_TO_EUROS).alias("price"))


def workloads() -> Iterator[Workload]:
    """The queries at three times the capacity, and two of them under a square wave and a sine."""
    bid, other = f"value like '{BID}'", f"value not like '{BID}'"
    is_123 = f"{bid} and cast({BID_AUCTION} as bigint) % 123 = 0"
    prices = {f"{bid} and {PRICE} >= {10**power}": float(power) for power in (6, 7)}
    uniform = jt.UniformDrop

    def by(group: str, time: str) -> jt.ConceptDrop:
        return jt.ConceptDrop(group=group, time=time, window=WINDOW)

    base = Workload(
        "nexmark-q1", "every bid in euros", events.write, q1, ("offset",), ("price",), {"UniformDrop": uniform}, TIME
    )
    base = replace(base, value=PRICE, delay_s=0.0, shape=step(2.0))
    yield replace(base, judged_one_in=_ONE_BID_IN)
    is_match = {"PriorityDrop": lambda: PriorityDrop({is_123: 1.0}), "UniformDrop": uniform}
    yield replace(base, name="nexmark-q2", what="bids for one auction in 123", answers=q2, policies=is_match)
    windowed = replace(base, delay_s=1.0, shape=step(3.0))
    bids = {"PriorityDrop": lambda: PriorityDrop({bid: 1.0}), "UniformDrop": uniform}
    hot = replace(windowed, name="nexmark-q5", what="bids for the hottest auction", answers=q5, keys=())
    hot = replace(hot, measures=("bids",), group=BID_AUCTION, policies=bids)
    yield hot
    yield replace(hot, name="nexmark-q5-square", what=f"{hot.what}, square wave", shape=square(3.0))
    yield replace(hot, name="nexmark-q5-sine", what=f"{hot.what}, sine", shape=sine(3.0))
    highest = {"PriorityDrop": lambda: PriorityDrop(prices), "UniformDrop": uniform}
    yield replace(windowed, name="nexmark-q7", what="the highest bid", answers=q7, keys=(), policies=highest)
    new = replace(windowed, name="nexmark-q8", what="new persons who sell", answers=q8, keys=("person",))
    others = {"PriorityDrop": lambda: PriorityDrop({other: 1.0}), "UniformDrop": uniform}
    yield replace(new, measures=("auctions",), group="substring(value, 10, 1)", value=None, policies=others)
    sessions = replace(windowed, name="nexmark-q11", what="bids in a session", answers=q11, keys=("bidder",))
    sessions = replace(sessions, measures=("bids",), group=BIDDER, value=None, policies={"UniformDrop": uniform})
    # A session ends a gap after its last bid, which no row is needed to tell.
    yield replace(sessions, end_is_key=False)
    # Groups come and go within a second: docs/group-drops.md advises against shedding by them, and the other is run beside.
    by_bidder = {"UniformDrop": uniform, "ConceptDrop": lambda: by(BIDDER, "arrived")}
    yield replace(
        sessions,
        name="nexmark-q12",
        what="bids of a bidder by arrival",
        answers=q12,
        end_is_key=True,
        policies=by_bidder,
    )
    by_auction = {"UniformDrop": uniform, "ConceptDrop": lambda: by(BID_AUCTION, TIME)}
    yield replace(
        windowed,
        name="nexmark-q17",
        what="statistics of each auction",
        answers=q17,
        keys=("auction",),
        measures=("bids", "mean", "total"),
        group=BID_AUCTION,
        policies=by_auction,
    )


QUERIES = {"q1": q1, "q2": q2, "q5": q5, "q7": q7, "q8": q8, "q11": q11, "q12": q12, "q17": q17}
KINDS = {"bids": BID, "auctions": AUCTION, "persons": PERSON}
