"""Rows with what real streams have in them: malformed text, nulls, wild times, huge keys, duplicates, nothing at all."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import md5
from pathlib import Path

from jettison.lab.bench.fault_scenario import (
    DUPLICATE,
    EMPTY,
    HUGE_KEY,
    MALFORMED,
    NAN,
    NULLS,
    WILD_ARRIVAL,
    WILD_TIME,
    Scenario,
)
from jettison.lab.bench.scripted import DELAY_S, LATE_AFTER_S, START_S, VALUES, WINDOW_S

SCHEMA = "id BIGINT, key STRING, value DOUBLE, vip BOOLEAN, at TIMESTAMP, arrived TIMESTAMP"
STEP_S = WINDOW_S
_LONGEST_S = 3600.0  # more than all files together, and less than until the last row
_ROWS, _KEYS, _DIRTY_ROWS = 120, 12, 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATE_FROM = 2  # what the first batch says of the time holds for rows of the third
_HUGE = "k" * 200_000
_MALFORMED = ("", "{", "null", "[1, 2]", '{"id": ', "\ufffd\x00\x01", '{"id": {"id": 3}}', '{"value": "many"}', "{}")
# Nobody's clock, but in some stream of everybody's.
_WILD_S = (0.0, -1.0, 253_402_300_799.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a file, and what a query reads in it; nothing but nulls where it is malformed."""

    line: str
    id: int | None = None
    key: str | None = None
    value: float | None = None
    vip: bool | None = None
    at_s: float | None = None

    @property
    def window(self) -> int | None:
        """Number of the window that it is in."""
        return None if self.at_s is None else int(self.at_s // WINDOW_S)

    @property
    def is_timely(self) -> bool:
        """Whether it is in a window that its file's neighbours are in too."""
        return self.at_s is not None and 0.0 <= self.at_s - START_S + DELAY_S < _LONGEST_S


def files(scenario: Scenario) -> list[list[Row]]:
    """The rows of all files of a run; the last one closes all windows."""
    chance = random.Random(scenario.seed + 1_000_003)
    found = [_file(scenario, chance, file) for file in range(scenario.files)]
    for kind in scenario.dirt:
        if kind == EMPTY:
            found[chance.randrange(1, scenario.files)] = []
        elif kind == DUPLICATE:
            for rows in found:
                rows += chance.sample([row for row in rows if row.id is not None], min(len(rows), _DIRTY_ROWS))
    ends_s = (START_S + 86_400.0, _WILD_S[-1])[WILD_TIME in scenario.dirt]
    return [*found, [_row(-1, "last", 0.0, ends_s, time.time(), vip=True)]]


def land(folder: Path, first: int, rows_of_files: Sequence[Sequence[Row]]) -> None:
    """Write files in the order of their numbers, from `first` on."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, rows in enumerate(rows_of_files, start=first):
        hidden = folder / f".{file:04d}"
        hidden.write_text("".join(f"{row.line}\n" for row in rows))
        os.utime(hidden, (START_S + file, START_S + file))  # files are taken in the order of their age
        hidden.rename(folder / f"{file:04d}.txt")


def _file(scenario: Scenario, chance: random.Random, file: int) -> list[Row]:
    now_s = time.time()
    # In the middle of the run whoever stamps the rows has his clock set back.
    set_back_s = 3600.0 if WILD_ARRIVAL in scenario.dirt and file >= scenario.files // 2 else 0.0
    rows = []
    for place in range(_ROWS):
        number = file * _ROWS + place
        at_s = START_S + file * STEP_S + chance.uniform(-DELAY_S, STEP_S)
        arrived_s = now_s - set_back_s - (2 * LATE_AFTER_S if number % 2 else 0.0)
        key, value = f"k{chance.randrange(_KEYS)}", float(chance.randrange(VALUES))
        rows.append(_row(number, key, value, at_s, arrived_s, vip=number % 20 == 0))
    for kind in scenario.dirt:
        for place in chance.sample(range(_ROWS), _DIRTY_ROWS):
            rows[place] = _dirtied(rows[place], kind, scenario, chance, file)
    return rows


def _dirtied(row: Row, kind: str, scenario: Scenario, chance: random.Random, file: int) -> Row:
    if row.id is None:
        return row
    document = json.loads(row.line)
    if kind == MALFORMED and scenario.policy != "NetworkDrop":  # whose own filters let no row without a value pass
        return Row(chance.choice(_MALFORMED))
    if kind == NULLS:
        names = ("key", "arrived", "vip") + (() if scenario.policy == "NetworkDrop" else ("id", "value", "at"))
        document[chance.choice(names)] = None
    if kind == NAN:
        document["value"] = float("nan")
    if kind == HUGE_KEY:
        document["key"] = _HUGE + str(chance.randrange(3))
    if kind == WILD_ARRIVAL:
        document["arrived"] = _text(chance.choice(_WILD_S))
    if kind == WILD_TIME and (scenario.bears_late_rows or file >= _LATE_FROM):
        # Where windows close, a time of 9999 would close all of them, and one of 1970 comes too late for any.
        document["at"] = _text(chance.choice(_WILD_S) if scenario.bears_late_rows else _WILD_S[0])
    return _read(document)


def _row(number: int, key: str, value: float, at_s: float, arrived_s: float, *, vip: bool) -> Row:
    times = {"at": _text(at_s), "arrived": _text(arrived_s)}
    return _read({"id": number, "key": key, "value": value, "vip": vip, **times})


def _read(document: dict[str, object]) -> Row:
    at_s = None if document["at"] is None else _seconds(str(document["at"]))
    facts = {name: document[name] for name in ("id", "key", "value", "vip")}
    return Row(json.dumps(document), at_s=at_s, **facts)  # type: ignore[arg-type]


def short(key: str | None) -> str | None:
    """A key as a sink tells it: some are too long."""
    return None if key is None else md5(key.encode(), usedforsecurity=False).hexdigest()


def _text(at_s: float) -> str:
    return (_EPOCH + timedelta(seconds=at_s)).isoformat()


def _seconds(text: str) -> float:
    return (datetime.fromisoformat(text) - _EPOCH).total_seconds()
