from __future__ import annotations

from pathlib import Path

import pytest

from jettison.network.picture import describe, draw
from network.networks import figure_4, figure_6, random_network


def test_the_text_has_coefficients_locations_and_a_road_map() -> None:
    text = describe(figure_4(), loads=(1.0, 0.5))
    assert "26.5" in text
    assert "18.75" in text
    boxes, locations, road_map = text.split("\n\n")
    assert boxes.splitlines()[0].split()[:3] == ["name", "kind", "reads"]
    assert [line.split()[0] for line in locations.splitlines()[2:]] == ["i1", "i2", "b1__b2", "b1__b4"]
    first, second = road_map.splitlines()[2:]
    assert first.startswith("0.0%")
    assert "none" in first
    assert second.startswith("50.0%")


def test_semantic_plans_name_their_ranges() -> None:
    assert " without [0, " in describe(random_network(2), semantic=True, loads=(0.5,))


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_it_is_drawn(tmp_path: Path, ending: str) -> None:
    draw(figure_6(), tmp_path / f"network.{ending}")
    content = (tmp_path / f"network.{ending}").read_bytes()
    assert content[:4] == b"\x89PNG" if ending == "png" else b"one" in content and b"<svg" in content
