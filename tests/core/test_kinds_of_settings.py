"""Plans on file are understood whatever policy this process runs."""

import subprocess
import sys

import pytest

from jettison.core.setting import SETTING_BY_KIND, Setting
from jettison.policy import GroupDrop, RandomDrop


def test_whoever_reads_plan_files_knows_all_kinds_of_settings():
    program = "import jettison.runtime.plan_file, jettison.core.setting as s; print(*sorted(s.SETTING_BY_KIND))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == sorted({"group", "priority", "random", "range", "region", "window"})
    assert set(found.stdout.split()) <= set(SETTING_BY_KIND)


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
