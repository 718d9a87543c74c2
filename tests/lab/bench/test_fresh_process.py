"""What a function does in a process of its own comes back, and one that hangs does not hold up the others."""

from __future__ import annotations

import os
import time

import pytest

from jettison.errors import JettisonError
from jettison.lab.fresh_process import in_fresh_process


def test_the_process_is_another_one() -> None:
    assert in_fresh_process(60.0, os.getpid) != os.getpid()


def test_an_error_comes_back_as_it_was() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        in_fresh_process(60.0, int, "x")


def test_a_process_that_takes_too_long_is_ended() -> None:
    started_s = time.monotonic()
    with pytest.raises(JettisonError, match=r"a process that ends well within 0\.5 s, got none"):
        in_fresh_process(0.5, time.sleep, 300.0)
    assert time.monotonic() - started_s < 120.0
