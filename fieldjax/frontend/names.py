"""What statements assign, change and contain, without looking into the functions and classes that they define."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def contains(nodes: Sequence[ast.AST], kinds: Any, stop: tuple[type, ...] = ()) -> bool:
    """Whether a node of one of `kinds` occurs; what is inside nodes of the kinds `stop` doesn't count."""
    return any(isinstance(node, kinds) for node in _walk(nodes, stop))


def _walk(nodes: Sequence[ast.AST], stop: tuple[type, ...]) -> Iterator[ast.AST]:
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*_OWN_SCOPE, *stop)):
            pending += ast.iter_child_nodes(node)


def assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind: assignments of all kinds, loops, `with`, definitions, imports."""
    found: set[str] = set()
    for node in _walk(statements, _COMPREHENSIONS):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
    return found


def mutated(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of what statements change in place: `x[0] = y`, `x.y = z`, `del x[0]`, `x.append(y)`."""
    found: set[str] = set()
    for node in _walk(statements, ()):
        changed: ast.AST | None = None
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            changed = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            changed = node.value.func
        if isinstance(changed, (ast.Subscript, ast.Attribute)) and (name := _root(changed)):
            found.add(name)
    return found


def _root(node: ast.AST) -> str | None:
    """The name that a chain of attributes and subscripts begins with."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
