"""What a trace asked of its tables, in order: the way to the plan of another mesh without tracing.

Question k depends on the static part of the call and on the answers before it. Walking a trie of questions
with the tables of another mesh is therefore exact: at a leaf, a trace would have asked just that and got just
those answers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from fieldjax.connectivity import Table
from fieldjax.errors import FieldjaxError

Plan = TypeVar("Plan")

MOST_PLANS = 256


class Question(NamedTuple):
    """One question to the table at position `slot` among the call's tables."""

    slot: int
    name: str
    arguments: tuple[Any, ...]

    def ask(self, tables: Sequence[Table]) -> Any:
        """The answer of these tables; an error is an answer too."""
        try:
            found = getattr(tables[self.slot], self.name)
            return found(*self.arguments) if self.name not in ("in_degree", "adjoint_pays") else found
        except FieldjaxError as error:
            return Refusal(error)


class Refusal:
    """An error as an answer, compared by what it says."""

    __slots__ = ("error",)

    def __init__(self, error: FieldjaxError) -> None:
        self.error = copy.copy(error)  # without its traceback, whose frames hold the table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refusal) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> tuple[type, str]:
        return type(self.error), self.error.message


class Log:
    """The questions of one trace, each asked once."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables: Sequence[Table] | None = tables
        self.answers: dict[Question, Any] = {}

    def ask(self, slot: int, name: str, arguments: tuple[Any, ...]) -> Any:
        """The answer, noted."""
        question = Question(slot, name, arguments)
        if question not in self.answers:
            assert self.tables is not None, "a sealed plan asks what its trace never asked"
            self.answers[question] = question.ask(self.tables)
        answer = self.answers[question]
        if isinstance(answer, Refusal):
            raise copy.copy(answer.error)
        return answer

    def seal(self) -> None:
        """Lets go of the tables: from now on only noted answers are given."""
        self.tables = None


class Trie(Generic[Plan]):
    """Plans by the answers to the questions of their traces; all are forgotten when they are too many."""

    def __init__(self) -> None:
        self._root: _Node[Plan] = _Node()
        self._count = 0

    def find(self, tables: Sequence[Table]) -> Plan | None:
        """The plan that a trace with these tables would come to, if one did."""
        node: _Node[Plan] | None = self._root
        while node is not None and node.fork is not None:
            question, branches = node.fork
            node = branches.get(question.ask(tables))
        return None if node is None else node.plan

    def add(self, log: Log, plan: Plan) -> None:
        """Keeps a plan under its answers.

        A function that asks other questions than it did before, after the same answers, read something besides
        its arguments that changed: what it led to before is forgotten.
        """
        if self._count >= MOST_PLANS:
            self._root, self._count = _Node(), 0
        node = self._root
        for question, answer in log.answers.items():
            if node.fork is None or node.fork[0] != question:
                node.fork = question, {}
            node = node.fork[1].setdefault(answer, _Node())
        node.plan, node.fork = plan, None
        self._count += 1


class _Node(Generic[Plan]):
    """A question with a branch for each answer, or a plan."""

    __slots__ = ("fork", "plan")

    def __init__(self) -> None:
        self.fork: tuple[Question, dict[Any, _Node[Plan]]] | None = None
        self.plan: Plan | None = None
