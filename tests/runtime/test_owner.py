"""One driver at a time writes beside a checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from jettison.core.storage import Folder
from jettison.errors import CheckpointInUse
from jettison.runtime.owner import Owner, place

BEAT_S = 0.1


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "jettison")


def refuse(reason):
    raise AssertionError(reason)


@pytest.fixture
def claim(folder):
    owners = []

    def make(on_lost=refuse):
        owner = Owner(folder, beat_s=BEAT_S)
        owner.claim(on_lost)
        owners.append(owner)
        return owner

    yield make
    for owner in owners:
        owner.release()


def on_file(folder, **changes):
    document = {"run": "other", "host": "elsewhere", "pid": 7, "beat": 3} | changes
    folder.replace("owner.json", json.dumps(document).encode())


def while_watched(monkeypatch, action):
    """Something happens between the first two looks of whoever watches, who then need not wait."""
    actions = iter([action])
    watch = SimpleNamespace(monotonic=time.monotonic, time=time.time, sleep=lambda _: next(actions, int)())
    monkeypatch.setattr("jettison.runtime.owner.time", watch)


def dead_process():
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    return int(child.stdout)


def test_a_second_run_is_refused_until_the_first_has_let_go(folder, claim):
    first = claim()
    with pytest.raises(CheckpointInUse, match=rf"process {os.getpid()} on .*Hint: stop that query first"):
        Owner(folder, beat_s=BEAT_S).refuse_second()
    with pytest.raises(CheckpointInUse):
        claim()
    first.release()
    assert folder.names() == []
    claim()


def test_a_run_that_let_go_and_takes_it_again_gives_signs_of_life_again(folder, claim):
    owner = claim()
    owner.release()
    owner.claim(refuse)
    deadline = time.monotonic() + 120.0
    while json.loads(folder.read("owner.json"))["beat"] < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert json.loads(folder.read("owner.json"))["beat"] >= 2


def test_looking_writes_nothing(folder):
    Owner(folder).refuse_second()
    assert folder.names() == []


def test_the_process_of_a_run_that_is_dead_has_lost_it(folder):
    on_file(folder, **place(), pid=dead_process())
    Owner(folder, beat_s=3600.0).refuse_second()  # it is not watched


def test_a_run_of_this_process_that_nobody_holds_has_lost_it(folder):
    on_file(folder, **place(), pid=os.getpid())
    Owner(folder, beat_s=3600.0).refuse_second()


@pytest.mark.parametrize("differs", ["host", "boot", "pid_namespace"])
@pytest.mark.parametrize("pid", [os.getpid(), None], ids=["our number", "a number that nobody has"])
def test_a_process_number_of_another_place_says_nothing(folder, monkeypatch, differs, pid):
    """Two containers with one host name: the number of a process in one of them is nobody's, or another's, in the other."""
    there = place() | {differs: "another", "pid": pid or dead_process()}
    on_file(folder, **there)
    while_watched(monkeypatch, lambda: on_file(folder, **there, beat=4))
    with pytest.raises(CheckpointInUse):
        Owner(folder, beat_s=3600.0).refuse_second()


@pytest.mark.parametrize("differs", [{"boot": None, "pid_namespace": None}, {"pid_namespace": "of a container before"}])
def test_where_a_process_number_says_nothing_silence_does(folder, claim, differs):
    """Written by an earlier release, or by the same container before it was started again."""
    on_file(folder, **place() | differs, pid=os.getpid())
    claim()


def test_who_holds_it_says_where_its_process_number_is_valid(folder, claim):
    claim()
    document = json.loads(folder.read("owner.json"))
    assert {name: document[name] for name in place()} == place()
    if sys.platform == "linux":
        assert all(place().values())


def test_a_run_elsewhere_that_gives_no_sign_of_life_has_lost_it(folder, claim):
    on_file(folder)
    owner = claim()
    assert json.loads(folder.read("owner.json"))["run"] == owner._run


def test_a_run_elsewhere_that_gives_signs_of_life_keeps_it(folder, monkeypatch):
    on_file(folder)
    while_watched(monkeypatch, lambda: on_file(folder, beat=4))
    with pytest.raises(CheckpointInUse, match="process 7 on 'elsewhere'"):
        Owner(folder, beat_s=3600.0).refuse_second()
    assert json.loads(folder.read("owner.json"))["run"] == "other"


def test_a_run_that_ends_while_it_is_watched_lets_go(folder, monkeypatch):
    on_file(folder)
    while_watched(monkeypatch, lambda: folder.delete("owner.json"))
    Owner(folder, beat_s=3600.0).refuse_second()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run": 3}', b"[" * 100_000])
def test_a_damaged_file_holds_nobody_off(folder, claim, content):
    folder.replace("owner.json", content)
    claim()


def test_a_run_that_was_taken_over_is_told_and_does_not_write_again(folder, claim):
    lost = []
    claim(lost.append)
    on_file(folder)
    deadline = time.monotonic() + 120.0
    while not lost and time.monotonic() < deadline:
        time.sleep(0.01)
    assert lost == ["process 7 on 'elsewhere' has taken over the checkpoint"]
    time.sleep(3 * BEAT_S)
    assert json.loads(folder.read("owner.json"))["run"] == "other"


def test_of_two_that_come_at_once_one_gets_it(folder, monkeypatch):
    """Both find nobody, and both have written before either looks again."""
    owners, held = [Owner(folder, beat_s=BEAT_S) for _ in range(2)], []
    both, look = threading.Barrier(2, timeout=120), Owner.refuse_second
    settling = SimpleNamespace(monotonic=time.monotonic, time=time.time, sleep=lambda _: both.wait())
    monkeypatch.setattr("jettison.runtime.owner.time", settling)
    monkeypatch.setattr(Owner, "refuse_second", lambda owner: (look(owner), both.wait()))

    def take(owner):
        try:
            owner.claim(lambda reason: None)
        except CheckpointInUse:
            return
        held.append(owner)

    threads = [threading.Thread(target=take, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for owner in held:
        owner.release()
    assert len(held) == 1
