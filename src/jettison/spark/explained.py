"""The plans that Spark's public interface only prints, as text and as trees of operators."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

_LINE = re.compile(r"^(?P<indent>(?:[ :]  )*(?:[:+]- )?)(?:\*\(\d+\) |\* )?(?P<text>.*)$")
_BRANCH = re.compile(r"(?:[ :]  )*[:+]- ")
_SECTION = re.compile(r"== (Final|Initial|Current) Plan ==")  # within an adaptive plan
_CUT_SHORT = re.compile(r"(\.\.\. \d+ more characters|Truncated plan of \d+ characters)\s*$")
_CTE = re.compile(r"~?CTERelation(Def|Ref) (\d+)\b")
_ATTRIBUTE = re.compile(r"#(\d+)")
_EXPRESSION_ID = re.compile(r"#\d+L?(?:-T\d+ms)?")
OURS = "scalar-subquery#"
"""In every answer with bounds: where it looks up whether rows are missing."""
_printing = threading.Lock()


def explained(explain: Callable[..., Any]) -> str:
    """What the method `explain` of a DataFrame or of a streaming query prints, logical plans included, unprinted."""
    # One at a time: whoever is second would take the first one's text for the usual output, and put it back for good.
    with _printing:
        printed = _Printed(sys.stdout)
        try:
            with contextlib.redirect_stdout(cast(io.StringIO, printed)):
                explain(extended=True)
        finally:
            printed.thread = None  # somebody may hold it for good, as a logging handler does
    return printed.text.getvalue()


class _Printed:
    """Takes what this thread prints; for other threads it is the usual output, whatever that can do."""

    def __init__(self, usual: Any) -> None:
        self.text = io.StringIO()
        self.thread: int | None = threading.get_ident()
        self._usual = usual

    def write(self, text: str) -> int:
        """Keep a text, or pass it on."""
        (self.text if threading.get_ident() == self.thread else self._usual).write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


@dataclass(slots=True)
class Node:
    """One operator of a plan.

    Parameters
    ----------
    text
        As Spark describes it; the name of the operator comes first.
    children, parents
        Positions of the operators that it reads, first the left one, and of those that read it.
    """

    text: str
    children: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)


def physical_plan(text: str) -> list[Node]:
    """The plan that is executed, the root first; what is used a second time is connected with what it stands for."""
    nodes = _tree(text.rpartition("== Physical Plan ==")[2])
    _connect_reused(nodes)
    return nodes


def analyzed_plan(text: str) -> list[Node]:
    """The plan as the query was written, the root first. Operators on streams begin with `~`, except for some.

    Empty where it cannot be told where the plan begins and ends: Spark has cut it short, or a literal holds a title.
    """
    titles = "== Analyzed Logical Plan ==", "== Optimized Logical Plan =="
    if any(text.count(title) != 1 for title in titles):
        return []
    columns, found, tree = text.split(titles[0])[1].split(titles[1])[0].strip("\n").partition("\n")
    # Above a plan that has columns these are named, at the root's own place.
    nodes = _tree(f"{columns}\n{tree}" if not found or _BRANCH.match(tree) else tree)
    _connect_named(nodes)
    return nodes


def is_cut_short(text: str) -> bool:
    """Whether Spark has left out the end of what it prints."""
    return _CUT_SHORT.search(text) is not None


def below(plan: Sequence[Node], place: int) -> frozenset[int]:
    """An operator and all that it reads, however far down."""
    found, ahead = {place}, [place]
    while ahead:
        for child in plan[ahead.pop()].children:
            if child not in found:
                found.add(child)
                ahead.append(child)
    return frozenset(found)


def texts_below(plan: Sequence[Node], place: int) -> list[str]:
    """The texts of an operator and of all that it reads."""
    return [plan[each].text for each in below(plan, place)]


def attributes(text: str) -> frozenset[str]:
    """Numbers of the attributes that a text names."""
    return frozenset(_ATTRIBUTE.findall(text))


def in_words(text: str) -> str:
    """The first line of a text, without numbers of attributes."""
    return _EXPRESSION_ID.sub("", text.splitlines()[0])


def lists(text: str) -> list[list[str]]:
    """What the lists of an operator hold, one after the other; nothing for a part that is no list."""
    parts = split(text[text.index("[") :]) if "[" in text else []
    return [split(part[1:-1]) if part.startswith("[") else [] for part in parts]


def split(text: str) -> list[str]:
    """Parts between commas that stand outside of all brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _tree(text: str) -> list[Node]:
    nodes: list[Node] = []
    above: list[tuple[int, int]] = []  # column and position of the operators that the next line may belong to
    begins = True  # whether the next line is the first of a tree, which nothing but its place tells
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or not line.strip() or _SECTION.match(match["text"]):
            begins = begins or "==" in line
            continue
        column = len(match["indent"])
        if not begins and not match["indent"].endswith("- "):
            nodes[-1].text += f"\n{line}"  # a literal with a line break
            continue
        begins = False
        while above and above[-1][0] >= column:
            above.pop()
        nodes.append(Node(match["text"]))
        if above:
            _connect(nodes, len(nodes) - 1, above[-1][1])
        above.append((column, len(nodes) - 1))
    return nodes


def _connect(nodes: Sequence[Node], child: int, parent: int) -> None:
    nodes[parent].children.append(child)
    nodes[child].parents.append(parent)


def _connect_named(nodes: Sequence[Node]) -> None:
    """Put what `WITH` gives a name below the places that name it, in place of where it is written."""
    defined = {
        match[2]: place for place, node in enumerate(nodes) if (match := _CTE.match(node.text)) and match[1] == "Def"
    }
    for place in defined.values():
        for parent in nodes[place].parents:
            nodes[parent].children.remove(place)
        nodes[place].parents.clear()
    for place, node in enumerate(nodes):
        if (match := _CTE.match(node.text)) and match[1] == "Ref" and match[2] in defined:
            _connect(nodes, defined[match[2]], place)


def _connect_reused(nodes: Sequence[Node]) -> None:
    plan_id = re.compile(r"\[plan_id=(\d+)\]")
    first = {
        match[1]: place
        for place, node in enumerate(nodes)
        if not node.text.startswith("Reused") and (match := plan_id.search(node.text))
    }
    for place, node in enumerate(nodes):
        match = plan_id.search(node.text)
        if node.text.startswith("ReusedExchange") and match and match[1] in first:
            _connect(nodes, first[match[1]], place)
