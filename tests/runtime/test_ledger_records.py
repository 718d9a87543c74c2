"""Records are typed, and the documentation, the schema and the types say the same."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import jettison.costs.accounts  # noqa: F401  # makes its kind of record known
from jettison.core.ledger_record import LedgerRecord, kind_of, known_kinds
from jettison.runtime.ledger import Ledger
from jettison.runtime.records import lines

DOCS = Path(__file__).parents[2] / "docs" / "ledger.md"
KINDS = ["batch", "concept", "fault", "function", "order", "plan", "start", "stop"]


def documented() -> dict[str, set[str]]:
    """Fields by kind of record, as the table has them."""
    fields: dict[str, set[str]] = {}
    kind = ""
    for cells in (line.split("|") for line in DOCS.read_text().splitlines() if line.startswith("|")):
        if len(cells) != 5 or cells[1].strip() in ("record", "---"):
            continue
        if named := re.match(r"`(\w+)`", cells[1].strip()):
            kind = named[1]
        fields.setdefault(kind, set()).update(re.findall(r"`(\w+\??)`", cells[2]))
    return fields


def typed(record: type[LedgerRecord]) -> set[str]:
    fields = [field for field in msgspec.structs.fields(record) if field.name != "at_s"]
    return {field.name + ("" if field.required else "?") for field in fields}


def test_every_kind_is_known():
    assert sorted(known_kinds()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_documentation_names_the_fields_of_every_record(kind):
    assert documented()[kind] == typed(known_kinds()[kind])


def test_the_schema_names_the_fields_of_every_record():
    described = {one["properties"]["record"]["enum"][0]: one for one in defined(Ledger.schema())}
    assert sorted(described) == KINDS
    for kind, record in known_kinds().items():
        assert described[kind]["properties"].keys() - {"record"} == {one.name for one in msgspec.structs.fields(record)}


def defined(schema):
    return [one for one in schema["$defs"].values() if "record" in one["properties"]]


def test_kinds_and_keys_of_newer_releases_pass_through():
    text = (
        b'{"record": "fault", "at_s": 1, "kind": "x", "detail": "", "severity": [1]}\n{"record": "news", "at_s": 2.5}\n'
        b'{"record": "news", "at_s": 2, "batch_id": 3, "points": {"a": {"seen": 2, "kept": 1, "dropped": 1}}, "more": 1}\n'
    )
    found, damaged = lines(text)
    assert damaged == 0
    assert [line.document["record"] for line in found] == ["fault", "news", "news"]
    assert found[0].document["severity"] == [1]
    assert found[2].record.batch_id == 3


@pytest.mark.parametrize(
    "line",
    [
        b'{"record": "news"}',
        b'{"record": "news", "at_s": "now"}',
        b'{"record": "news", "at_s": 1e999}',
        b'{"record": "news", "at_s": 2, "batch_id": "x", "points": {}}',
        b'{"record": "concept", "at_s": 2, "point": "rides"}',
        b'{"record": "function", "at_s": 2, "batch_id": -2, "points": {}}',
        b'{"record": "stop", "at_s": 2, "error": null, "faults": {"plan": -1}}',
    ],
)
def test_whatever_its_kind_a_line_of_wrong_values_is_damaged(line):
    assert lines(line + b"\n") == ([], 1)


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    ledger = Ledger(tmp_path, run="run-000001")
    with pytest.raises(ValueError, match=r"Expected `int` >= 0 - at `\$.points\[...\].dropped`"):
        ledger.counted("function", 1.0, 0, "score", seen=1, kept=2)
    assert not list(ledger.records())


def test_kinds_have_names_of_their_own():
    assert all(kind_of(record) == kind for kind, record in known_kinds().items())
