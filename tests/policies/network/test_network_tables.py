from __future__ import annotations

from jettison.policies.network.network_tables import describe
from networks import figure_4, random_network


def parts(block: str) -> tuple[str, str, list[str]]:
    """Legend, header and rows of a table."""
    lines = block.splitlines()
    rule = next(number for number, line in enumerate(lines) if set(line) == {"-", " "})
    return " ".join(lines[: rule - 1]), lines[rule - 1], lines[rule + 1 :]


def test_the_text_has_coefficients_locations_and_a_road_map() -> None:
    text = describe(figure_4(), loads=(1.0, 0.5))
    assert "26.5" in text
    assert "18.75" in text
    boxes, locations, road_map = map(parts, text.split("\n\n"))
    assert boxes[1].split()[:3] == ["name", "kind", "reads"]
    assert [line.split()[0] for line in locations[2]] == ["i1", "i2", "b1__b2", "b1__b4"]
    first, second = road_map[2]
    assert first.startswith("0.0%")
    assert "none" in first
    assert second.startswith("50.0%")


def test_each_table_stands_under_a_legend_that_explains_its_columns() -> None:
    boxes, locations, road_map = (parts(block) for block in describe(figure_4(), loads=(0.5,)).split("\n\n"))
    for (legend, header, _), columns in (
        (boxes, ["cost", "selectivity", "rate", "load coefficient"]),
        (locations, ["drops", "rate", "of all load"]),
        (road_map, ["drops", "delivery", "utility", "in all"]),
    ):
        assert [column for column in columns if f"{column}:" not in legend or column not in header] == []


def test_semantic_plans_name_their_ranges() -> None:
    assert " without [0, " in describe(random_network(2), semantic=True, loads=(0.5,))
