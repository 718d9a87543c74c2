"""Pilots that are all ended with their test, under a controller that is told what to answer."""

from __future__ import annotations

import pytest

from jettison.core.storage import Folder
from jettison.policies import UniformDrop
from jettison.runtime.ledger import Ledger
from jettison.runtime.pilot import Pilot
from pilot_parts import SETTINGS, ScriptedController, fly_by


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "jettison")


@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    fly_by(monkeypatch, ScriptedController)


@pytest.fixture
def fly(folder):
    """Makes pilots over one folder, as restarts of one query would, and ends them all."""
    pilots = []

    def make(publisher, exact_counts=None, *, points=("rows",), policy=None, start=True, **options):
        made = Pilot(
            points,
            policy or UniformDrop(),
            SETTINGS,
            publisher,
            folder,
            Ledger.open(folder / "ledger"),
            exact_counts,
            **options,
        )
        pilots.append(made)
        if start:
            made.start()
        return made

    yield make
    for made in pilots:
        made.close()
