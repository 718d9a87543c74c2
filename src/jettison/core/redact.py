"""Takes secrets out of error texts before they are logged or put on record."""

from __future__ import annotations

import re

_HIDDEN = "***"
_NAME = r"(?:password|passwd|pwd|secret|token|api[_.-]?key|access[_.-]?key|credential)[\w.-]{0,40}"
# Every repetition is bounded, or ends at what cannot begin another match: a text may be long.
_RULES = (
    # A JAAS configuration runs to its semicolon, whatever it holds.
    (re.compile(r"(?i)(jaas[._]config\W{1,5})[^;]*;?"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)(loginmodule\s{1,9}(?:required|requisite|sufficient|optional))[^;]*;?"), rf"\1 {_HIDDEN}"),
    (re.compile(r"(?i)(://)[^\s/@:]{1,200}:[^\s/]{0,200}@"), rf"\1{_HIDDEN}@"),
    (re.compile(rf"(?i)({_NAME}[\"']?\s{{0,9}}[=:]\s{{0,9}})(\"[^\"]*\"|'[^']*'|[^\s,;&)}}\]\"']+)"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s{1,9}[\w.~+/=-]{8,}"), rf"\1 {_HIDDEN}"),
)


def redacted(text: str) -> str:
    """The text with passwords, tokens and keys put out of sight.

    >>> redacted("cannot open jdbc:postgresql://ann:hunter2@db/rides?password=hunter2&ssl=true")
    'cannot open jdbc:postgresql://***@db/rides?password=***&ssl=true'
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
