"""Takes secrets out of error texts before they are logged or put on record."""

from __future__ import annotations

import re

_HIDDEN = "***"
_NAME = r"[\w.-]*(?:password|passwd|pwd|secret|token|api[_.-]?key|access[_.-]?key|credential|jaas[_.]config)[\w.-]*"
_RULES = (
    # A JAAS configuration runs to its semicolon, whatever it holds.
    (re.compile(r"(?i)(jaas[._]config\W{1,5})[^;]*;?"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)(\b\w*loginmodule\s+(?:required|requisite|sufficient|optional))[^;]*;?"), rf"\1 {_HIDDEN}"),
    (re.compile(r"(?i)\b([a-z][\w+.-]*://)[^\s/@:]+:[^\s/]*@"), rf"\1{_HIDDEN}@"),
    (re.compile(rf"(?i)({_NAME}[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&)}}\]\"']+)"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {_HIDDEN}"),
)


def redacted(text: str) -> str:
    """The text with passwords, tokens and keys put out of sight.

    >>> redacted("cannot open jdbc:postgresql://ann:hunter2@db/rides?password=hunter2&ssl=true")
    'cannot open jdbc:postgresql://***@db/rides?password=***&ssl=true'
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
