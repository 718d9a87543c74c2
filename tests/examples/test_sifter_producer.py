"""The example producer runs, meets its share, and says what it ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "sifter_producer.py"


def test_the_example_producer_meets_its_share_and_beats_random_dropping(capsys):
    spec = importlib.util.spec_from_file_location("sifter_producer", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    rate = example.main(rounds=4, rows=50_000, throttler=0.3)
    assert rate == pytest.approx(0.3, rel=0.02)
    lines = capsys.readouterr().out.splitlines()
    assert "bytes shipped: built for a throttler of 0.3000" in lines[0]
    assert float(lines[-2].split("QoS ")[1].split(" ")[0]) > 0.5
