"""What tells a query from all others, over the life of its checkpoint: a new one gets another, at the same path too."""

from __future__ import annotations

from uuid import uuid4

from jettison.core.storage import Folder

_FILE = "token"


def query_token(home: Folder) -> str:
    """The token of the query whose checkpoint `home` lies beside, made with the first question."""
    content = home.read(_FILE)
    if content is None:
        content = uuid4().hex.encode()
        home.replace(_FILE, content)
    return content.decode("ascii", "replace")
