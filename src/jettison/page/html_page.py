"""The files that the page is made of, and the same page in one file with its data inside."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from jettison import extras
from jettison.page.view import QueryView

# Nothing is fetched from anywhere else, and nobody may put the page into a frame. The charts set styles of their own.
SERVED_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_STYLE = '<link rel="stylesheet" href="page.css">'
_SCRIPTS = "\n".join(f'<script src="{name}.js" defer></script>' for name in ("plotly", "panels", "page"))


@cache
def asset(name: str) -> str:
    """One of the page's own files."""
    return (files(__package__) / "assets" / name).read_text("utf-8")


@cache
def charting_script() -> str:
    """The script that draws charts, as it lies in the wheel of its package."""
    extras.require("plotly", where="the page")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def whole(views: list[QueryView]) -> str:
    """A page that needs no server and no network: styles, scripts and data are in it."""
    page = asset("page.html")
    assert _STYLE in page
    assert _SCRIPTS in page
    data = msgspec.json.encode({"queries": views}).decode()
    # Inside of a script element nothing but its end is read as markup.
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    head = f'<meta http-equiv="Content-Security-Policy" content="{_FILE_POLICY}">\n<style>{asset("page.css")}</style>'
    scripts = "\n".join(
        [
            f'<script type="application/json" id="data">{data}</script>',
            *(
                f"<script>{_inline(script)}</script>"
                for script in (charting_script(), asset("panels.js"), asset("page.js"))
            ),
        ]
    )
    page = page.replace(_STYLE, head).replace(_SCRIPTS, "")
    before, end, after = page.rpartition("</body>")
    return f"{before}{scripts}\n{end}{after}"


def _inline(script: str) -> str:
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
