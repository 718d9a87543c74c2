"""Options of sources and sinks, with variables of the environment in place of what nobody should write into a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from jettison.core.redact import hide
from jettison.errors import InvalidInput, did_you_mean, refuse

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def expanded(options: Mapping[str, str | int | float | bool], *, where: str) -> dict[str, str]:
    """The options as Spark takes them; no error, log or record shows what came from the environment.

    >>> import os
    >>> os.environ["JETTISON_DOC_USER"] = "ann-of-docs"
    >>> expanded({"kafka.group.id": "${JETTISON_DOC_USER}-rides", "header": True}, where="inputs.rides")
    {'kafka.group.id': 'ann-of-docs-rides', 'header': 'true'}
    """

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            hint = did_you_mean(match[1], os.environ, otherwise=f"export {match[1]}=...")
            expected = f"`${{{match[1]}}}` must be set in the environment"
            refuse(expected, "no such variable", where=where, hint=hint, error=InvalidInput)
        hide(found)
        return found

    texts = {name: str(given).lower() if isinstance(given, bool) else str(given) for name, given in options.items()}
    return {name: _VARIABLE.sub(value, text) for name, text in texts.items()}
