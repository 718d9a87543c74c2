from __future__ import annotations

import pytest

from jettison.core import redact
from jettison.errors import InvalidInput, explain
from jettison.pipeline.options import expanded


def test_what_comes_from_the_environment_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_hidden", set())
    monkeypatch.setenv("RIDES_LOGIN", "plain-looking words")
    options = expanded({"header": "x-${RIDES_LOGIN}", "maxFilesPerTrigger": 1, "multiLine": True}, where="inputs.rides")
    assert options == {"header": "x-plain-looking words", "maxFilesPerTrigger": "1", "multiLine": "true"}
    said = explain("a broker", "no answer for plain-looking words", hint="ask for 'plain-looking words'")
    assert said == "a broker, got no answer for ***. Hint: ask for '***'."


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"`\$\{NO_SUCH_LOGIN\}` must be set .* for inputs\.rides"):
        expanded({"password": "${NO_SUCH_LOGIN}"}, where="inputs.rides")
