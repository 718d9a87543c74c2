"""Makes links that work in the repository work on the site, which has pages of its own for documents that lie elsewhere."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/finished_query.ipynb": "notebook.md",
}
_LINK = re.compile(r'(?P<before>\]\(|src=")(?P<path>[^)"\s#:]+)')
_FROM_ELSEWHERE = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="?(?:https?:)?//[^>]*>')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root, and the notebook."""
    for name, page in _PAGES.items():
        text = (_ROOT / name).read_text()
        files.append(File.generated(config, page, content=_as_page(text) if name.endswith(".ipynb") else text))
    return files


def _as_page(notebook: str) -> str:
    """A notebook as Markdown, with what came out when it was run last."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            image = output.get("data", {}).get("image/png")
            if image is not None:
                parts.append(f"![What the cell above draws](data:image/png;base64,{image.strip()})")
            elif output.get("name") == "stdout":
                parts.append(f"```\n{''.join(output['text']).rstrip()}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point every link at where its target is on the site; files that are no documents are copied there."""
    uri = page.file.src_uri
    of_root = {site: name for name, site in _PAGES.items()}
    folder = posixpath.dirname(of_root.get(uri, f"docs/{uri}"))

    def relinked(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        if not (_ROOT / path).exists():
            return link[0]
        if (_ROOT / path).is_dir():
            path = f"{path}/README.md"
        target = _PAGES.get(path) or path.removeprefix("docs/")
        if target == path:
            target = f"files/{path}"
            if files.get_file_from_path(target) is None:
                files.append(File.generated(config, target, abs_src_path=str(_ROOT / path)))
        return link["before"] + posixpath.relpath(target, posixpath.dirname(uri) or ".")

    return _LINK.sub(relinked, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads anything from another host."""
    if found := _FROM_ELSEWHERE.search(output):
        raise PluginError(f"{page.file.src_uri} loads from elsewhere: {found[0]}")
    return output
