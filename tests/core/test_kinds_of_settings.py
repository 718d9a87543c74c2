"""Plans on file are understood whatever policy this process runs."""

import subprocess
import sys

import pytest

from jettison.core.plan import DropPlan
from jettison.core.setting import SETTING_BY_KIND, Setting
from jettison.policies import GroupDrop, LevelDrop, RandomDrop, RangeDrop, RegionDrop, WindowMarks


def test_whoever_reads_plan_files_knows_all_kinds_of_settings():
    settings = (GroupDrop(), LevelDrop(), RandomDrop(), RangeDrop("value"), RegionDrop(), WindowMarks())
    plan = DropPlan(1, {setting.kind: setting for setting in settings})
    program = """
import sys
from jettison.core.plan import DropPlan
before = [name for name in sys.modules if name.startswith("jettison.policies")]
print(before, *DropPlan.from_json(sys.argv[1]).points)
"""
    text = plan.to_json()
    found = subprocess.run([sys.executable, "-c", program, text], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["[]", *plan.points]
    assert plan.points.keys() == {
        kind for kind, one in SETTING_BY_KIND.items() if one.__module__.startswith("jettison")
    }


@pytest.mark.parametrize(
    ("setting", "in_time", "late"),
    [
        (RandomDrop(0.5), 0.5, 0.5),
        (RandomDrop(1.0, 0.05, 3.0), 1.0, 0.05),
        (GroupDrop(late_factor=0.05, late_after_s=3.0), 1.0, 0.05),
    ],
)
def test_status_can_tell_what_becomes_of_late_rows(setting: Setting, in_time: float, late: float) -> None:
    assert (setting.keep_fraction, setting.keep_fraction_of_late) == (in_time, late)
