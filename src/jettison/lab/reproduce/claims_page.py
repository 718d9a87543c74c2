"""The tables of claims in docs/papers, made of stored claims.

`python -m jettison.lab.reproduce.claims_page docs/papers/sifter.md` writes, below `<!-- claims of sifter/NAME -->`, the
table of the claims that `jettison reproduce sifter --out DIR` found: NAME is a copy of DIR's `claims.json`. A line
`<!-- claims of sifter/NAME: fig4-* slopes -->` takes those of it that fit a pattern. A table whose file is not there stays.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from jettison.lab.reproduce.claims import in_brief, load
from jettison.lab.reproduce.report import claims_table

BLOCK = re.compile(r"(<!-- claims of ([\w./-]+)(?:: ([\w*? -]+?))? -->\n).*?(<!-- end of claims -->)", re.DOTALL)


def page(text: str, folder: Path) -> str:
    """The same page with its tables made again."""
    return BLOCK.sub(lambda found: _block(found, folder), text)


def _block(found: re.Match[str], folder: Path) -> str:
    if not (folder / found[2]).exists():
        return found[0]
    patterns = (found[3] or "*").split()
    claims = [one for one in load(folder / found[2]) if any(fnmatchcase(one.id, pattern) for pattern in patterns)]
    return f"{found[1]}\n{claims_table(in_brief(Path(found[2]).parent.name, claims))}\n\n{found[4]}"


if __name__ == "__main__":
    for document in map(Path, sys.argv[1:]):
        document.write_text(page(document.read_text(), document.parent))
