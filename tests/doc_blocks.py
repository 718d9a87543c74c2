"""Blocks of code in the documents."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: str, language: str = "python") -> list[str]:
    """All blocks in one language, in order; those without a language are what is typed into a shell, or comes out."""
    return [text for of, text in _BLOCK.findall((ROOT / document).read_text()) if of == language]
