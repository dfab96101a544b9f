"""What a trace asked of its tables, in order: the way to the plan of another mesh without tracing.

Question k depends on the static part of the call and on the answers before it. Walking a trie of questions
with the tables of another mesh is therefore exact: at a leaf, a trace would have asked just that and got just
those answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from fieldjax.connectivity import Table
from fieldjax.errors import FieldjaxError

Plan = TypeVar("Plan")


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
        self.error = error

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
            raise answer.error
        return answer

    def seal(self) -> None:
        """Lets go of the tables: from now on only noted answers are given."""
        self.tables = None


class Trie(Generic[Plan]):
    """Plans by the answers to the questions of their traces."""

    def __init__(self) -> None:
        self._root: _Node[Plan] = _Node()

    def find(self, tables: Sequence[Table]) -> Plan | None:
        """The plan that a trace with these tables would come to, if one did."""
        node: _Node[Plan] | None = self._root
        while node is not None and node.question is not None:
            node = node.branches.get(node.question.ask(tables))
        return None if node is None else node.plan

    def add(self, log: Log, plan: Plan) -> Plan:
        """Keeps a plan under its answers; returns the one that is kept (another thread's may be first)."""
        node = self._root
        for question, answer in log.answers.items():
            if node.question is None:
                node.question = question
            assert node.question == question, "equal traces asked different questions"
            node = node.branches.setdefault(answer, _Node())
        if node.plan is None:
            node.plan = plan
        return node.plan


class _Node(Generic[Plan]):
    """A question with a branch for each answer, or a plan."""

    __slots__ = ("branches", "plan", "question")

    def __init__(self) -> None:
        self.question: Question | None = None
        self.branches: dict[Any, _Node[Plan]] = {}
        self.plan: Plan | None = None
