"""Which policy for which query: the rules, once, for the README's table, for `jettison advise` and for `policy="auto"`.

What only a person can know no rule looks for: those lines of the table have no condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.core.answer_bounds import AnswerBounds
from jettison.core.documents import convert
from jettison.errors import refuse

MANY = 0.05
"""Share of the answers resting on too few rows from which groups need a policy that looks at them."""


@dataclass(frozen=True, slots=True)
class Auto:
    """Leaves it to the rules of the README which policy a query gets; `policy="auto"` is `Auto()`.

    It is chosen when the shedder is made, from what is said here and from what is on record, such as that of a dry run. The
    log and the ledger's `start` say why. What is on record decides once for a checkpoint: later runs on it go on with the
    policy that was chosen, unless `record` names the run to go by, or the run before was a dry one.

    Parameters
    ----------
    group, time, window
        What the answers are grouped by, as for `ConceptDrop`; `time` and `window` also as for `WindowDrop`.
    whole_windows
        A missing window is better than a wrong number. The query must call `deliver`, as `WindowDrop` wants it.
    priorities
        Some rows matter more than others, as for `PriorityDrop`.
    record
        Checkpoint of another run, such as a dry run, whose record counts; the query's own if not given.
    """

    group: Any = None
    time: Any = None
    window: Any = None
    whole_windows: bool = False
    priorities: Mapping[str, float] | None = None
    record: str | Path | None = None

    def __post_init__(self) -> None:
        if self.whole_windows and (self.time is None or self.window is None):
            hint = "say of what the windows are made, as in `Auto(time='time', window='5 seconds', whole_windows=True)`"
            got = f"time={self.time!r}, window={self.window!r}"
            refuse("`Auto(whole_windows=True)` needs `time` and `window`", got, hint=hint)


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look at: what the program says, and what is on record.

    Parameters
    ----------
    said
        By the program.
    before
        The policy of the last run on record; empty where there is none.
    few_rows
        Share of the answers that rested, or would have rested, on too few rows for bounds; `None` where nobody looked.
    goes_on
        Whether the policy of the last run was chosen by these rules, for the query that now starts again.
    """

    said: Auto = Auto()
    before: str = ""
    few_rows: float | None = None
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the table: in which case, what to use, and when facts alone show that this is the case, and how.

    `policy` is the class that it leads to; `shown_by` gives the reason in words, or nothing where it does not apply.
    """

    case: str
    use: str
    policy: str = ""
    shown_by: Callable[[Facts], str] | None = None


def _whole_windows(facts: Facts) -> str:
    return "a missing window is better than a wrong number" if facts.said.whole_windows else ""


def _priorities(facts: Facts) -> str:
    return "some rows matter more than others" if facts.said.priorities else ""


def _groups(facts: Facts) -> str:
    said, few = facts.said, facts.few_rows
    if said.group is None or said.time is None or said.window is None:
        return ""
    if facts.before == "ConceptDrop":  # what it has saved the groups from is not on record
        return "answers are by group, and the run before looked after the groups too"
    if facts.goes_on and facts.before == DEFAULT.policy:
        return ""
    if few is None:
        return "answers are by group, and it is not on record how many rows each has"
    return (
        "" if few < MANY else f"{few:.0%} of the answers rest on too few rows for bounds if rows are dropped at random"
    )


def _nothing(facts: Facts) -> str:
    if facts.goes_on and facts.before == DEFAULT.policy:
        return "the run before on this checkpoint had it"
    if facts.few_rows is None:
        return "nothing more is known of the data"
    return f"{facts.few_rows:.1%} of the answers rest on too few rows for bounds, and nothing more is known of the data"


DEFAULT = Rule(
    "you want unbiased answers with error bounds, and know nothing more about the data",
    "`jt.UniformDrop()`, the default",
    "UniformDrop",
    _nothing,
)
RULES = (
    DEFAULT,
    Rule(
        "a missing window is better than a wrong number",
        "[`jt.WindowDrop`](docs/window-drops.md): fewer windows, each of them exact",
        "WindowDrop",
        _whole_windows,
    ),
    Rule(
        "some rows matter more than others",
        "[`jt.PriorityDrop`](docs/steering.md#priorities): the lightest go first",
        "PriorityDrop",
        _priorities,
    ),
    Rule(
        "grouped answers must keep nearly every group, rare ones too",
        "[`jt.ConceptDrop`](docs/group-drops.md): large groups are thinned, small ones kept whole while the budget allows",
        "ConceptDrop",
        _groups,
    ),
    Rule(
        "many standing range queries over one stream, some regions wanted by more of them than others",
        "[`jt.Sifter`](docs/sifter.md): a share per region, on Spark or at the source",
    ),
    Rule(
        "several outputs with owners of different tolerance share one stream",
        "[`jt.Network`](docs/networks.md): shared work once, drops where they hurt least",
    ),
    Rule(
        "one function makes rows wait, and some rows cost it far more than others",
        "[`jt.load_aware`](docs/load-aware.md): the fewest rows that keep its queue short",
    ),
    Rule(
        "some rows must never be lost",
        'any policy but `WindowDrop` and networks, with `guard(..., protect="amount > 10000")`',
    ),
    Rule(
        "you only want to know what would be dropped, and what errors would follow",
        "any policy, with [`Shedder(..., dry_run=True)`](docs/dry-run.md)",
    ),
)


def chosen(facts: Facts) -> tuple[str, str]:
    """The policy that facts lead to, and why: the first rule that they show to apply, or else the default.

    >>> chosen(Facts())
    ('UniformDrop', 'nothing more is known of the data')
    >>> chosen(Facts(Auto(group="zone", time="time", window="5 seconds"), few_rows=0.4))[0]
    'ConceptDrop'
    """
    for rule in RULES:
        if rule is not DEFAULT and rule.shown_by is not None and (why := rule.shown_by(facts)):
            return rule.policy, why
    return DEFAULT.policy, _nothing(facts)


def bounds_on_record(batches: Iterable[Mapping[str, Any]]) -> dict[str, list[AnswerBounds]]:
    """What records of batches say of bounds, by answer; damaged ones say nothing."""
    found: dict[str, list[AnswerBounds]] = {}
    for batch in batches:
        for name, said in (batch.get("answers") or {}).items():
            found.setdefault(name, []).append(convert(said, AnswerBounds))
    return found


def few_rows(found: Mapping[str, Sequence[AnswerBounds]]) -> float | None:
    """Share of the answers that rest, or would rest, on too few rows: of that aggregate of which it is the largest."""
    shares = [
        sum(one.few_rows for one in said) / answers
        for said in found.values()
        if (answers := sum(one.answers for one in said))
    ]
    return max(shares, default=None)
