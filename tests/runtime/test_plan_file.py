"""The plan file always has its size, and damage to it is noticed."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import DropPlan
from jettison.errors import DamagedPlan, PlanTooLarge
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime import plan_file
from jettison.runtime.plan_file import decode, encode
from jettison.runtime.schedule import Doubts, Entry, Schedule

PLAN = Schedule.of(
    DropPlan(7, {"rides": RandomDrop(0.25, 0.05, 3.0)}, "4 times more rows arrive than can be processed")
)
any_text = st.text(st.characters(exclude_categories=()), max_size=20)
plans = st.builds(
    DropPlan,
    st.integers(min_value=0, max_value=2**63 - 1),
    st.dictionaries(any_text, st.builds(RandomDrop, st.floats(min_value=0.0, max_value=1.0)), max_size=4),
    any_text,
)


def harmless(content: bytes) -> bool:
    """Whether the file is refused, or still says what `PLAN` says."""
    try:
        return decode(content) == PLAN
    except DamagedPlan:
        return True


@given(plans, st.integers(min_value=0, max_value=2**62))
def test_any_plan_comes_back_equal(plan, valid_until_us):
    schedule = Schedule.of(plan)
    content = encode(schedule, valid_until_us=valid_until_us, size=8192)
    assert content.isascii()
    assert decode(content) == schedule


def test_checksum_and_lease_lie_where_the_query_reads_them():
    content = encode(PLAN, valid_until_us=1_700_000_000_123_456, size=512)
    assert int(content[plan_file.CHECKSUM]) == zlib.crc32(content[plan_file.CHECKED_START :])
    assert int(content[plan_file.VALID_UNTIL_US]) == 1_700_000_000_123_456
    assert json.loads(content[plan_file.BODY_START :])["plans"][0]["points"].keys() == {"rides"}


def test_a_plan_may_take_all_bytes_but_not_one_more():
    needed = len(encode(PLAN, valid_until_us=5, size=4096))
    assert decode(encode(PLAN, valid_until_us=5, size=needed)) == PLAN
    with pytest.raises(PlanTooLarge, match=r"plan version 7.*Hint: a policy asks for more by `plan_bytes`"):
        encode(PLAN, valid_until_us=5, size=needed - 1)


@pytest.mark.long
def test_any_single_byte_replaced_by_any_other_is_noticed_or_harmless():
    content = encode(PLAN, valid_until_us=1_700_000_000_000_000)
    for position, old in enumerate(content):
        for new in range(256):
            if new != old:
                damaged = content[:position] + bytes([new]) + content[position + 1 :]
                assert harmless(damaged), (position, new)


def test_a_changed_byte_of_checksum_or_body_is_always_noticed():
    content = encode(PLAN, valid_until_us=1_700_000_000_000_000)
    for position in set(range(len(content))) - {plan_file.CHECKSUM.stop}:
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            with pytest.raises(DamagedPlan):
                decode(bytes(damaged))


def test_any_single_byte_removed_or_doubled_is_noticed_or_harmless():
    content = encode(PLAN, valid_until_us=1_700_000_000_000_000)
    for position in range(len(content)):
        assert harmless(content[:position] + content[position + 1 :]), f"byte {position} removed"
        assert harmless(content[: position + 1] + content[position:]), f"byte {position} doubled"


def test_a_file_cut_anywhere_is_noticed():
    content = encode(PLAN, valid_until_us=1_700_000_000_000_000)
    for length in range(len(content)):
        with pytest.raises(DamagedPlan):
            decode(content[:length])


def test_a_file_with_more_behind_what_its_checksum_covers_is_refused():
    with pytest.raises(DamagedPlan, match="checksum"):
        decode(encode(PLAN, valid_until_us=1_700_000_000_000_000) + b" ")


@given(st.binary(max_size=64))
def test_other_bytes_are_damaged_and_nothing_worse(content):
    with pytest.raises(DamagedPlan):
        decode(content)


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"version": 1}', b"\xff\xfe", '{"cause": "é"}'.encode()])
def test_a_fitting_checksum_alone_does_not_make_a_plan(body):
    with pytest.raises(DamagedPlan):
        decode(f"{zlib.crc32(body):010d} ".encode() + body)


def test_plans_come_back_with_the_times_from_which_they_count_and_only_the_newest_with_its_cause():
    older, newer = DropPlan(1, {"rides": RandomDrop(0.5)}, "why"), DropPlan(2, cause="why not")
    schedule = Schedule((Entry(5, older), Entry(9, newer)), Doubts(77, 99, {"ours": 0}))
    found = decode(encode(schedule, valid_until_us=0, size=4096))
    assert [(entry.from_us, entry.plan.version, entry.plan.cause) for entry in found.entries] == [
        (5, 1, ""),
        (9, 2, "why not"),
    ]
    assert found.entries[0].plan.same_settings(older)
    assert found.doubts == Doubts(77, 99), "marks are others in every run"
