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
_PLAN_ID = re.compile(r"\[plan_id=(\d+)\]")
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


@dataclass(slots=True, eq=False)
class Node:
    """One operator of a plan.

    Parameters
    ----------
    text
        As Spark describes it; the name of the operator comes first.
    children, parents
        The operators that it reads, first the left one, and those that read it.
    """

    text: str
    children: list[Node] = field(default_factory=list, repr=False)
    parents: list[Node] = field(default_factory=list, repr=False)

    @property
    def below(self) -> set[Node]:
        """The operator and all that it reads, however far down."""
        found, ahead = {self}, [self]
        while ahead:
            new = set(ahead.pop().children) - found
            found |= new
            ahead += new
        return found

    @property
    def texts_below(self) -> list[str]:
        """The texts of these."""
        return [node.text for node in self.below]

    def connect(self, child: Node) -> None:
        """Let this operator read another one."""
        self.children.append(child)
        child.parents.append(self)


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
    above: list[tuple[int, Node]] = []  # operators that the next line may belong to, with their columns
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
            above[-1][1].connect(nodes[-1])
        above.append((column, nodes[-1]))
    return nodes


def _connect_named(nodes: Sequence[Node]) -> None:
    """Put what `WITH` gives a name below the places that name it, in place of where it is written."""
    named = [(node, match) for node in nodes if (match := _CTE.match(node.text))]
    defined = {match[2]: node for node, match in named if match[1] == "Def"}
    for node in defined.values():
        for parent in node.parents:
            parent.children.remove(node)
        node.parents.clear()
    for node, match in named:
        if match[1] == "Ref" and match[2] in defined:
            node.connect(defined[match[2]])


def _connect_reused(nodes: Sequence[Node]) -> None:
    numbered = [(node, match[1]) for node in nodes if (match := _PLAN_ID.search(node.text))]
    first = {number: node for node, number in numbered if not node.text.startswith("Reused")}
    for node, number in numbered:
        if node.text.startswith("ReusedExchange") and number in first:
            node.connect(first[number])
