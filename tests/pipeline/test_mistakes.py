"""Every mistake in a pipeline file is named by file, line and column, with what was expected, what came, and a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jettison.core.storage import home
from jettison.errors import InvalidInput, InvalidSetting, JettisonError
from jettison.pipeline.document import Pipeline, load
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.regions.sifter import Sifter
from jettison.policies.window.window_drop import WindowDrop
from jettison.runtime.ledger import Ledger
from jettison.spark.pipeline import start

RIDES = """\
latency: 5 seconds
checkpoint: out/checkpoint
policy: uniform
inputs:
  rides:
    format: kafka
    options: {kafka.bootstrap.servers: "broker:9092", subscribe: rides}
    row_id: [partition, offset]
boxes:
  fares:
    reads: rides
    window: {time: [10 seconds, 5 seconds]}
    group: zone
    answers: {fare: avg(fare), rides: count(*)}
outputs:
  answers: {reads: fares, path: out/answers}
"""


def loaded(folder: Path, *changes: tuple[str, str], name: str = "rides.yaml") -> Pipeline:
    text = RIDES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return load(folder / name)


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "said"),
    [
        ("latency:", "latncy:", 1, 1, "got latncy for the pipeline. Hint: did you mean 'latency'?"),
        ("5 seconds\n", "soon\n", 1, 1, "`latency` must be a positive duration, got 'soon'"),
        ("latency: 5 seconds", "latency: [5]", 1, 10, "it must be a number or a text, got [5] for latency"),
        ("uniform", "unifrom", 3, 9, "got 'unifrom' for policy. Hint: did you mean 'uniform'?"),
        ("uniform", "{kind: windw}", 3, 16, "got 'windw' for policy.kind. Hint: did you mean 'window'?"),
        (
            "uniform",
            "{max_gap: 3}",
            3,
            9,
            "`kind` must be given, got none for policy. Hint: write kind: one of uniform,",
        ),
        ("uniform", "{kind: window, max_gp: 3}", 3, 24, "got max_gp for policy. Hint: did you mean 'max_gap'?"),
        ("uniform", "{kind: window, max_gap: x}", 3, 33, "it must be a whole number, got 'x' for policy.max_gap"),
        ("uniform", "{kind: window, max_gap: -1}", 3, 24, "`max_gap` must be a whole number from 1, got -1"),
        ("uniform", "{kind: concept, error: 7}", 3, 25, "`error` must lie in (0, 1), got 7.0"),
        ("uniform", "{kind: priority}", 3, 9, "`priorities` must be given, got none for policy"),
        ("uniform", "{kind: priority, priorities: {a: x}}", 3, 42, "a number, got 'x' for policy.priorities.a"),
        (
            "format: kafka",
            "format: rides",
            7,
            15,
            "options of rides out of rowsPerSecond, rampUpTime, numPartitions, got kafka.",
        ),
        ("format: kafka", "path: x\n    format: rides", 8, 15, "options of rides"),
        ("uniform", "{kind: auto, recrd: x}", 3, 22, "got recrd for policy. Hint: did you mean 'record'?"),
        (
            "uniform",
            "{kind: auto, priorities: {a: -1}}",
            3,
            22,
            "`priorities['a']` must be a positive number, got -1.0",
        ),
        ("uniform", "uniform\nheadroom: 2", 4, 1, "`headroom` must lie in (0, 1], got 2.0"),
        ("group:", "grup:", 13, 5, "got grup for boxes.fares. Hint: did you mean 'group'?"),
        ("avg(fare)", "avrg(fare)", 14, 15, "got 'avrg(fare)' for boxes.fares. Hint: did you mean 'avg'?"),
        (
            "avg(fare)",
            "percentile(fare)",
            14,
            15,
            "a percentile needs a column and a share in [0, 1], got 'percentile(fare)'",
        ),
        ("5 seconds]", "5 fortnights]", 12, 14, "`window` must be a positive duration, got '5 fortnights'"),
        (
            "avg(fare)",
            "'percentile(fare, 95)'",
            14,
            15,
            "a share in [0, 1], got 'percentile(fare, 95)' for boxes.fares",
        ),
        ("avg(fare)", "'percentile(fare, nan)'", 14, 15, "a share in [0, 1], got 'percentile(fare, nan)'"),
        ("avg(fare)", "percentile(0.5)", 14, 15, "a percentile needs a column and a share"),
        ("avg(fare)", "avg(fare) filter (where x > 1)", 14, 15, "an answer must be one of avg, count,"),
        ("group: zone", "confidence: 1", 13, 17, "it must be a number < 1.0, got 1 for boxes.fares.confidence"),
        ("group: zone", "watermark: {time: 10 parsecs}", 13, 17, "`watermark` must be a duration"),
        ("group: zone", "watermark: {time: -1 second}", 13, 17, "`watermark` must not be negative, got '-1 second'"),
        ("row_id", "watermark: {time: 10 parsecs}\n    row_id", 8, 17, "`watermark` must be a duration"),
        ("[10 seconds, 5 seconds]", "[]", 12, 14, "`window` must have a size, or a size and a slide"),
        ("[10 seconds, 5 seconds]", "[9 s, 3 s, 1 s]", 12, 14, "got 9 s, 3 s, 1 s. Hint: write {time: 5 seconds}"),
        ("[10 seconds, 5 seconds]", "[5 s, 10 s]", 12, 14, "a slide that is no longer, got 5 s, 10 s"),
        ("uniform", "uniform\npeak_rows_per_s: -1", 4, 1, "`peak_rows_per_s` must be a positive number, got -1"),
        ("uniform", "uniform\npeak_rows_per_s: .nan", 4, 1, "`peak_rows_per_s` must be a positive number, got nan"),
        ("uniform", "uniform\ntrigger: 6 seconds", 4, 1, "`trigger` must be shorter than `latency`, got '6 seconds'"),
        (
            "subscribe: rides",
            "from: 2026-01-01",
            7,
            61,
            "got a date for inputs.rides.options.from. Hint: put it in quotes",
        ),
        ("5 seconds\n", "2026-01-01\n", 1, 10, "a number or a text, got a date for latency. Hint: put it in quotes"),
        ("group: zone", "sql: select 1", 10, 3, "a box must have `sql` or `answers`, got both for boxes.fares"),
        ("reads: fares", "reads: fare", 16, 3, "got 'fare' for output 'answers'. Hint: did you mean 'fares'?"),
        ("out/answers}", "out, qos: {weight: 2}}", 16, 38, "`qos` goes with the policy `network`"),
        ("row_id", "protect: x > 1\n    row_id", 8, 5, "`protect` must be left out with WindowDrop"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, column: int, said: str
) -> None:
    window = [("policy: uniform", "policy: window")] if "protect" in new else []
    with pytest.raises(JettisonError) as caught:
        loaded(tmp_path, (old, new), *window)
    assert str(caught.value).startswith(f"{tmp_path / 'rides.yaml'}:{line}:{column}: ")
    assert said in str(caught.value)


NO_WINDOW = ("window: {time: [10 seconds, 5 seconds]}", "confidence: 0.9")


@pytest.mark.parametrize(
    ("policy", "missing"),
    [
        ("window", "time"),
        ("{kind: window, max_gap: 2}", "time"),
        ("{kind: window, time: time}", "window"),
        ("concept", "group"),
        ("{kind: concept, group: zone}", "time"),
        ("{kind: concept, group: zone, time: time}", "window"),
    ],
)
def test_a_policy_says_what_it_misses_where_no_box_alone_has_a_window(
    tmp_path: Path, policy: str, missing: str
) -> None:
    said = rf"rides\.yaml:3:1: `{missing}` must be given, got none for policy \w+\. Hint: write {missing}: .* one box"
    with pytest.raises(InvalidSetting, match=said):
        loaded(tmp_path, ("uniform", policy), NO_WINDOW)


def test_parentheses_within_an_answer_are_its_own(tmp_path: Path) -> None:
    given = "sum(if(zone = ')(', (fare + 1) * 2, 0))"
    assert loaded(tmp_path, ("avg(fare)", f'"{given}"')).boxes["fares"].answers["fare"] == given


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"latency": 3,\n "latency": 4}', "'latency' twice in one mapping, the second in line 2"),
        ('{"inputs": {"a":\t1, "a": 2}}', "'a' twice in one mapping"),
    ],
)
def test_json_takes_no_name_twice(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        load(tmp_path / "p.json")


def test_json_has_lines_too(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{\n  "latncy": 3\n}')
    with pytest.raises(JettisonError, match=r"p\.json:2:3: .*did you mean 'latency'"):
        load(tmp_path / "p.json")


def test_what_yaml_takes_without_a_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'row_id' twice in one mapping, the second in line 9"):
        loaded(tmp_path, ("row_id: [partition, offset]", "row_id: a\n    row_id: b"))


SECRET = "hunter2-of-the-broker"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("subscribe: rides", f"kafka.sasl.jaas.config: [{SECRET}]"),
        ("subscribe: rides}", f"token: {SECRET}, ]"),
        ("subscribe: rides}", f'token: "{SECRET}}}'),
        ('options: {kafka.bootstrap.servers: "broker:9092", subscribe: rides}', f"options: {SECRET}"),
        ("policy: uniform", f"spark: {{a: [{SECRET}]}}"),
        (RIDES, f"{SECRET}"),
    ],
)
def test_no_error_shows_a_value_of_an_option(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(JettisonError) as caught:
        loaded(tmp_path, (old, new))
    assert SECRET not in str(caught.value)


def test_a_policy_takes_time_window_and_group_from_the_only_box_with_a_window(tmp_path: Path) -> None:
    window = loaded(tmp_path, ("uniform", "{kind: window, max_gap: 3}")).made_policy()
    assert window == WindowDrop(time="time", window=("10 seconds", "5 seconds"), max_gap=3)
    concept = loaded(tmp_path, ("uniform", "{kind: concept, group: city, error: 0.1}")).made_policy()
    assert concept == ConceptDrop(group="city", time="time", window=("10 seconds", "5 seconds"), error=0.1)


def test_a_sifter_has_its_queries_and_its_sample_from_files(tmp_path: Path) -> None:
    rows = "\n".join(f"{price},{sector},1" for price in range(100) for sector in ("tech", "food"))
    (tmp_path / "sample.csv").write_text(f"price,sector,other\n{rows}\n")
    attributes = "{price: {low: 0, high: 100}, sector: {values: [tech, food]}}"
    queries = "{high: price > 75, tech: sector = 'tech'}, weights: {high: 3}"
    text = (
        f"{{kind: sifter, attributes: {attributes}, queries: {queries}, sample: {tmp_path / 'sample.csv'}, regions: 4}}"
    )
    policy = loaded(tmp_path, ("uniform", text)).made_policy()
    assert isinstance(policy, Sifter)
    with pytest.raises(JettisonError, match=r":3:\d+: `weights` must be of queries that are given, got hihg"):
        loaded(tmp_path, ("uniform", text.replace("{high: 3}", "{hihg: 3}")))
    with pytest.raises(JettisonError, match="`sample` must name a file of rows, got"):
        loaded(tmp_path, ("uniform", text.replace("sample.csv", "none.csv")))


@pytest.mark.parametrize(("before", "said"), [(True, "of a dry run"), (False, "of a run that drops rows")])
def test_a_dry_run_and_another_cannot_share_a_checkpoint(tmp_path: Path, before: bool, said: str) -> None:
    ledger = Ledger.open(home(tmp_path / "checkpoint") / "ledger")
    ledger.start(1.0, latency_bound_s=5.0, policy="UniformDrop", dry_run=before)
    ledger.stop(2.0)
    pipeline = loaded(tmp_path, ("out/checkpoint", str(tmp_path / "checkpoint")))
    nowhere: Any = None  # no session is asked before
    with pytest.raises(InvalidSetting, match=rf"a dry run must have .*, got '\S+/checkpoint', {said}\. Hint: name ano"):
        start(nowhere, pipeline, dry_run=not before)
