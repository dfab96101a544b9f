"""Rewrites a function's conditions so that they can be selections: `if`, ternaries, `and`, `or`, `not`, chains.

The syntax tree is rewritten once; file and line numbers stay the user's. Each condition is then decided at run
time by `frontend.selection`: a plain bool runs as Python would, a condition that differs from point to point
records both branches.

An `if` becomes two local functions, whose parameters are the names that its branches assign or whose containers
they change. An `if` with a
`return` takes the statements after it into the branches that don't return. Inside loops, `break`, `continue`
and `return` stay Python's: their conditions must be plain.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from fieldjax.frontend import selection
from fieldjax.frontend.names import assigned, contains, mutated

RUNTIME = "__fieldjax_selection__"
BRANCH = "__fieldjax_branch_"
_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.Not)
_LEFT_ALONE = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)

_known: weakref.WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = weakref.WeakKeyDictionary()


def rewritten(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its conditions rewritten; itself where there are none, or where there is no source."""
    if not isinstance(function, types.FunctionType):
        return function
    if function not in _known:
        _known[function] = _rewrite(function)
    return _known[function]


def _rewrite(function: types.FunctionType) -> Callable[..., Any]:
    definition = _definition(function)
    if definition is None or not _has_conditions(definition) or contains(definition.body, _LEFT_ALONE):
        return function
    definition.decorator_list = []
    local = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
    definition.body = _Block(local).statements(definition.body, is_function=True)
    free = [n for n in function.__code__.co_freevars if n != RUNTIME]
    factory = _define("__factory__", _parameters([*free, RUNTIME]), [definition], [])
    factory.lineno, factory.col_offset = 1, 0
    module = ast.fix_missing_locations(ast.Module([factory], []))
    outer = compile(module, function.__code__.co_filename, "exec", dont_inherit=True).co_consts[0]
    return _rebuilt(function, next(c for c in outer.co_consts if isinstance(c, types.CodeType)))


def _definition(function: types.FunctionType) -> ast.FunctionDef | None:
    """The syntax tree of a function, at its place in the file."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__code__.co_name:
        return None  # a lambda: its source is the statement that it stands in
    indent = len(lines[0]) - len(lines[0].lstrip())
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset += indent  # type: ignore[attr-defined]
            node.end_col_offset += indent  # type: ignore[attr-defined]
    ast.increment_lineno(tree, first - 1)
    return definition


def _has_conditions(definition: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, _CONDITIONS) or (isinstance(node, ast.Compare) and len(node.ops) > 1)
        for node in ast.walk(definition)
    )


def _rebuilt(function: types.FunctionType, code: types.CodeType) -> Callable[..., Any]:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(selection)
    closure = tuple(cells[name] for name in code.co_freevars)
    code = _named(code, function.__code__.co_name, function.__code__.co_qualname)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


def _named(code: types.CodeType, name: str, qualified: str) -> types.CodeType:
    """The code under the function's own name, and its branches under that name too."""
    constants = tuple(
        _named(c, name, qualified) if isinstance(c, types.CodeType) and c.co_name.startswith(BRANCH) else c
        for c in code.co_consts
    )
    return code.replace(co_name=name, co_qualname=qualified, co_consts=constants)


def _define(*parts: Any) -> ast.FunctionDef:
    """A definition; from Python 3.12 on it also lists type parameters."""
    made = ast.FunctionDef(*parts)
    made.type_params = []  # type: ignore[attr-defined]
    return made


def _parameters(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


class _Block:
    """Rewrites statements, and the expressions in them."""

    def __init__(self, local: set[str]) -> None:
        self._local, self._count = local, 0

    def statements(self, body: Sequence[ast.stmt], is_function: bool, in_loop: bool = False) -> list[ast.stmt]:
        """The statements of a block. Where `is_function`, its end is the end of a function."""
        done: list[ast.stmt] = []
        for position, statement in enumerate(body):
            if isinstance(statement, ast.If) and self._can_move(statement, is_function, in_loop):
                rest = body[position + 1 :] if contains([statement], ast.Return) else ()
                done += self._branch(statement, rest, in_loop)
                if rest or contains([statement], ast.Return):
                    return done
            else:
                done.append(self._inner(statement, is_function, in_loop))
        return done

    def _can_move(self, statement: ast.If, is_function: bool, in_loop: bool) -> bool:
        """Whether the branches can become functions."""
        returns = contains([statement], ast.Return)
        jumps = contains([statement], (ast.Break, ast.Continue), stop=_LOOPS)
        return not jumps and (not returns or (is_function and not in_loop))

    def _inner(self, statement: ast.stmt, is_function: bool, in_loop: bool) -> ast.stmt:
        """A statement that stays, with its expressions and its blocks rewritten."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return statement
        loop = in_loop or isinstance(statement, _LOOPS)
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, name, _Expressions().visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(statement, name, self.statements(value, False, loop))
            elif isinstance(value, list):
                setattr(statement, name, [self._part(v, loop) for v in value])
        return statement

    def _part(self, part: Any, in_loop: bool) -> Any:
        if isinstance(part, ast.expr):
            return _Expressions().visit(part)
        if isinstance(part, (ast.ExceptHandler, ast.match_case)):
            part.body = self.statements(part.body, False, in_loop)
        return part

    def _branch(self, statement: ast.If, rest: Sequence[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        """An `if` as two functions and a call that chooses between them."""
        test = _Expressions().visit(statement.test)
        returns = contains([statement], ast.Return)
        inside = [*statement.body, *statement.orelse, *rest]
        changed = mutated(inside)
        names, outer = sorted(assigned(inside) | (changed & self._local)), sorted(changed - self._local)
        branches = []
        for body in (statement.body, statement.orelse):
            whole = [*body, *(_copied(rest) if returns and not _always_returns(body) else ())]
            inner = self.statements(whole, is_function=returns, in_loop=in_loop and not returns)
            if not returns:
                inner.append(ast.Return(_tuple(names, ast.Load())))
            branches.append(self._function(names, inner or [ast.Pass()], statement))
        call = _call("returned" if returns else "assigned", test, *(ast.Name(b.name, ast.Load()) for b in branches))
        call.args += [
            _list([_call("peek", ast.Constant(n), _thunk(ast.Name(n, ast.Load()))) for n in group])
            for group in (names, outer)
        ]
        result: ast.stmt = ast.Return(call)
        if not returns:
            result = ast.Assign([_tuple(names, ast.Store())], call) if names else ast.Expr(call)
        return [*(_located(b, statement) for b in branches), _located(result, statement.test)]

    def _function(self, names: Sequence[str], body: list[ast.stmt], at: ast.stmt) -> ast.FunctionDef:
        self._count += 1
        name = f"{BRANCH}{self._count}_{at.lineno}"
        return _define(name, _parameters(names), body, [])


def _always_returns(body: Sequence[ast.stmt]) -> bool:
    last = body[-1] if body else None
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    return isinstance(last, ast.If) and _always_returns(last.body) and _always_returns(last.orelse)


def _copied(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    import copy

    return copy.deepcopy(list(statements))


class _Expressions(ast.NodeTransformer):
    """Rewrites ternaries, `and`, `or`, `not` and chained comparisons."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Lambda, ast.NamedExpr)):
            return node
        if isinstance(node, (ast.IfExp, ast.BoolOp, ast.Compare)) and contains([node], ast.NamedExpr):
            return node
        return super().visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test, body, other = (self.visit(part) for part in (node.test, node.body, node.orelse))
        return _located(_call("ternary", test, _thunk(body), _thunk(other)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return _located(_call(name, *(_thunk(self.visit(v)) for v in node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _located(_call("negated", operand), node)
        node.operand = operand
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        left, *others = [self.visit(part) for part in (node.left, *node.comparators)]
        if len(others) == 1:
            node.left, node.comparators = left, others
            return node
        kinds = [ast.Constant(type(op).__name__) for op in node.ops]
        return _located(_call("chained", left, _list(kinds), _list([_thunk(o) for o in others])), node)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load()), list(arguments), [])


def _thunk(expression: ast.expr) -> ast.Lambda:
    return ast.Lambda(_parameters([]), expression)


def _list(items: Sequence[ast.expr]) -> ast.List:
    return ast.List(list(items), ast.Load())


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(n, context) for n in names], context)


def _located(node: Any, at: ast.stmt | ast.expr) -> Any:
    """New nodes at the place of the one that they stand for."""
    ast.copy_location(node, at)
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt, ast.arg)) and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node
