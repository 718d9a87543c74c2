"""Blocks of code in the documents."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"(\w+=\S+ )?(jettison|make|pip|spark-submit|\(cd) ")


def blocks(document: str, language: str = "python") -> list[str]:
    """All blocks in one language, in order; those without a language are what is typed into a shell, or comes out."""
    return [text for of, text in _BLOCK.findall((ROOT / document).read_text()) if of == language]


def languages(document: str) -> set[str]:
    return {of for of, _ in _BLOCK.findall((ROOT / document).read_text())}


def typed(document: str) -> list[str]:
    """The lines that a page's blocks have for a shell, without comments; one that goes on in the next is one."""
    found = "".join(block for block in blocks(document, "") if _TYPED.match(block)).replace("\\\n", " ")
    return [" ".join(line.partition(" #")[0].split()) for line in found.splitlines()]


def comes_out(document: str) -> list[str]:
    """The blocks without a language that are not typed."""
    return [block for block in blocks(document, "") if not _TYPED.match(block)]


def words(line: str) -> list[str]:
    """What a shell makes of a line, without variables of the environment; what is in brackets may be left out."""
    return [word for word in shlex.split(line.replace("[", "").replace("]", "")) if not re.match(r"[A-Z_]+=", word)]
