"""What goes wrong in one run of `jettison bench faults`: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

POLICIES = ("UniformDrop", "ConceptDrop", "Sifter", "WindowDrop", "JoinDrop", "NetworkDrop", "PriorityDrop")
KAFKA_EVERY = 7
"""Of so many seeds the last one is on a real broker."""
CLUSTER_EVERY = 9
"""Of so many seeds the last one has executors of its own, if it is on no broker."""

KILLED, KILLED_AT_START, INTERRUPTED = "driver killed", "driver killed while it starts", "sink fails"
BROKER_PAUSED, BROKER_RESTARTED = "broker paused", "broker restarted"
EXECUTOR_KILLED, DISK_FULL, PLAN_AT_WORK = "executor killed", "disk full", "plan damaged while it runs"
PLAN, LEDGER, STATE, CLOCK = "plan damaged", "ledger's last line damaged", "state damaged", "clock set back"
DUPLICATE, EMPTY, WILD_TIME = "duplicate ids", "empty batch", "event times of 1970 and 9999"
WILD_ARRIVAL, NULLS, MALFORMED = "arrivals of 1970 and 9999, and set back", "nulls", "malformed JSON"
NAN, HUGE_KEY = "NaN", "huge keys"
DIRT = (DUPLICATE, EMPTY, WILD_TIME, WILD_ARRIVAL, NULLS, MALFORMED, NAN, HUGE_KEY)
FAULTS = (
    *(KILLED, KILLED_AT_START, INTERRUPTED, PLAN, PLAN_AT_WORK, LEDGER, STATE, DISK_FULL, CLOCK),
    *(BROKER_PAUSED, BROKER_RESTARTED, EXECUTOR_KILLED),
    *DIRT,
)
_LATEST_KILL_S = 0.9
_LATEST_START_S = 2.0  # a query takes one or two until its first batch
_KILLED_SHARE = 0.4  # a new process takes longer than all else in a run


@dataclass(frozen=True, slots=True)
class Leg:
    """One start of the query, and what befalls it.

    Parameters
    ----------
    end
        `KILLED`, `KILLED_AT_START`, `INTERRUPTED`, or nothing: it runs to the end of what has arrived.
    call, delay_s
        The call of the sink, counted from 0, at which it ends, and how long after the beginning of that call it is killed;
        while it starts, how long after the order to start, but before the first call of the sink.
    during
        What happens at the first call of the sink.
    after
        What happens to the files beside the checkpoint before the next leg.
    """

    end: str = ""
    call: int = 0
    delay_s: float = 0.0
    during: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A policy, what is asked of it, the dirt in its rows, and the legs of the run; the last one is left in peace.

    `answers` says whether the query gives answers by window, or the rows that it kept.
    """

    seed: int
    policy: str
    answers: bool
    on_kafka: bool
    on_cluster: bool
    dirt: tuple[str, ...]
    legs: tuple[Leg, ...]

    @property
    def files(self) -> int:
        """Files of rows, a batch each; one more closes all windows. Those are marked some batches ahead."""
        return 6 if self.policy == "WindowDrop" else 3

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is to go wrong, each once; what did, the run tells."""
        of_legs = {one for leg in self.legs for one in (leg.end, *leg.after)}
        # A leg that is killed while it starts sees nothing of what would happen at the first call of its sink.
        of_legs |= {one for leg in self.legs if leg.end != KILLED_AT_START for one in leg.during}
        return tuple(fault for fault in FAULTS if fault in of_legs or fault in self.dirt)

    @property
    def bears_late_rows(self) -> bool:
        """Whether nothing in the query closes windows, so that any event time may be in any file."""
        return not self.answers and self.policy != "WindowDrop"


def scenario(seed: int, *, with_kafka: bool) -> Scenario:
    """The run of a seed.

    >>> scenario(3, with_kafka=True) == scenario(3, with_kafka=True)
    True
    """
    chance = random.Random(seed)
    on_kafka = with_kafka and seed % KAFKA_EVERY == KAFKA_EVERY - 1
    on_cluster = not on_kafka and seed % CLUSTER_EVERY == CLUSTER_EVERY - 1
    policy = POLICIES[(seed + seed // len(POLICIES)) % len(POLICIES)]  # those on a broker in turn, too
    if on_kafka and policy in ("WindowDrop", "NetworkDrop"):  # partitions are not read in the order of event time
        policy = chance.choice(("UniformDrop", "ConceptDrop"))
    # A batch of a topic begins only where there are rows.
    dirt = chance.sample([kind for kind in DIRT if not (on_kafka and kind == EMPTY)], chance.randint(2, 4))
    broker = chance.sample((BROKER_PAUSED, BROKER_RESTARTED), 2) if on_kafka else []
    legs = [
        _leg(chance, (*broker[place : place + 1], *([EXECUTOR_KILLED] if on_cluster else [])))
        for place in range(chance.choice((1, 2, 2)))
    ]
    if chance.random() < _KILLED_SHARE:
        place = chance.randrange(len(legs))
        at_start = replace(legs[place], end=KILLED_AT_START, delay_s=chance.uniform(0.0, _LATEST_START_S))
        legs[place] = chance.choice((replace(legs[place], end=KILLED), at_start))
    answers = not on_kafka and chance.random() < 0.5
    return Scenario(seed, policy, answers, on_kafka, on_cluster, tuple(dirt), (*legs, Leg()))


def _leg(chance: random.Random, others: tuple[str, ...]) -> Leg:
    own = (chance.choice((DISK_FULL, PLAN_AT_WORK)),) if chance.random() < 0.4 else ()
    return Leg(
        end=INTERRUPTED,
        call=chance.randint(0, 1),
        delay_s=chance.uniform(0.0, _LATEST_KILL_S),
        during=(*others, *own),
        after=tuple(chance.sample((PLAN, LEDGER, STATE, CLOCK), chance.randint(0, 2))),
    )
