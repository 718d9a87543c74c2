"""Takes secrets out of error texts before they are logged or put on record."""

from __future__ import annotations

import re

_HIDDEN = "***"
_KEYS = r"(?:api|access|account|secret|private|encryption|customer|shared|keystore|sas)[_.-]?key"
_NAME = rf"(?:password|passwd|pwd|secret|token|credential|signature|{_KEYS})[\w.-]{{0,80}}"
# What runs to a semicolon, but for those within quotes; a quote that is not closed runs to the end.
_TO_SEMICOLON = r"(?:[^;\"']|\"[^\"]*(?:\"|$)|'[^']*(?:'|$))*;?"
# Every repetition is bounded, or ends at what cannot begin another match: a text may be long.
_RULES = (
    (re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}-----|$)", re.DOTALL), _HIDDEN),
    # A JAAS configuration runs to its semicolon, whatever it holds.
    (re.compile(rf"(?i)(jaas[._]config\W{{1,5}}){_TO_SEMICOLON}"), rf"\1{_HIDDEN}"),
    (
        re.compile(rf"(?i)(loginmodule\s{{1,9}}(?:required|requisite|sufficient|optional)){_TO_SEMICOLON}"),
        rf"\1 {_HIDDEN}",
    ),
    # Keys of S3 may hold slashes.
    (re.compile(r"(?i)(://)[^\s/@:]{1,200}:[^\s@]{0,200}@(?:[^\s/@]{0,200}@)?"), rf"\1{_HIDDEN}@"),
    (
        re.compile(rf"(?i)({_NAME}[\"']?\s{{0,9}}(?:[=:]|->|=>)\s{{0,9}})(\"[^\"]*\"|'[^']*'|[^\s,;&)}}\]\"']+)"),
        rf"\1{_HIDDEN}",
    ),
    (re.compile(rf"(?i)(\((?:[\w.-]{{0,80}}\.)?{_NAME},)[^)\s]+"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)([?&]sig=)[^\s&]+"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s{1,9}[\w.~+/=-]{8,}"), rf"\1 {_HIDDEN}"),
)
_hidden: set[str] = set()
_SHORTEST = 4
"""Characters of a text that may be hidden wherever it stands: less would hide half of every sentence."""


def hide(secret: str) -> None:
    """Put this very text out of sight, from now on, wherever it stands."""
    if len(secret.strip()) >= _SHORTEST:
        _hidden.add(secret.strip())


def redacted(text: str) -> str:
    """The text with passwords, tokens and keys put out of sight.

    >>> redacted("cannot open jdbc:postgresql://ann:hunter2@db/rides?password=hunter2&ssl=true")
    'cannot open jdbc:postgresql://***@db/rides?password=***&ssl=true'
    """
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
