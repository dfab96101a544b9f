"""Each error as people read it: what, where, why, and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

Cell, Edge, Vertex = fj.Dimension("Cell"), fj.Dimension("Edge"), fj.Dimension("Vertex")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
E2CDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
MESH = fj.Mesh(E2C=fj.as_connectivity([Edge, E2CDim], Cell, [[0, 1], [1, 2], [2, 3], [3, 0]]))
F = fj.as_field([Cell], np.arange(4.0))


def calls(body: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: fj.field_operator(body)(*arguments, **({"offset_provider": MESH} | options))


def sparse() -> fj.Field:
    return fj.as_field([Edge, E2CDim], np.ones((4, 2)))


CASES: dict[str, tuple[Callable[[], Any], str, tuple[str, ...]]] = {
    "undeclared dimension": (calls(lambda f: f(K + 1), F), "f(K + 1)", ("can't be shifted along K",)),
    "wrong dimension order": (
        lambda: fj.as_field({K: 2, Cell: 3}, np.ones((2, 3))),
        "",
        ("(K, Cell) are not in canonical order", "write (Cell, K)"),
    ),
    "shape and domain": (
        lambda: fj.as_field({Cell: 4}, np.ones(3)),
        "fj.as_field({Cell: 4}, np.ones(3))",
        ("an array of shape (3,) doesn't fill", "the domain has shape (4,)"),
    ),
    "missing entry": (
        calls(lambda f: f(E2C), F, offset_provider={"E2X": 1}),
        "f(E2C)",
        ("no entry 'E2C'", "it has: E2X", "did you mean 'E2X'?"),
    ),
    "local dimension without its table": (
        calls(lambda w: fj.neighbor_sum(w, axis=E2CDim), sparse(), offset_provider={}),
        "fj.neighbor_sum(w, axis=E2CDim)",
        ("no connectivity with the local dimension E2C",),
    ),
    "reduction over a non-local axis": (
        calls(lambda f: fj.neighbor_sum(f, axis=Cell), F),
        "fj.neighbor_sum(f, axis=Cell)",
        ("Cell isn't a local dimension", "neighbor_sum(f(V2E), axis=V2EDim)"),
    ),
    "nothing to reduce": (
        calls(lambda f: fj.neighbor_sum(f, axis=E2CDim), F),
        "fj.neighbor_sum(f, axis=E2CDim)",
        ("nothing to reduce: a field on (Cell) has no E2C",),
    ),
    "the wrong codomain": (
        calls(lambda f: f(E2C), fj.as_field([Vertex], np.ones(3))),
        "f(E2C)",
        ("has no Cell to look up", "the connectivity points into Cell"),
    ),
    "broken narrowing": (
        calls(lambda f: f(E2C), F[1:3]),
        "f(E2C)",
        ("note:",),
    ),
    "a truth value": (
        calls(lambda f: f if f > 0 else -f, F),
        "f > 0",
        ("a field has no truth value", "where(condition, a, b)"),
    ),
    "an output that reaches too far": (
        calls(lambda f: f + 1, F, out=fj.zeros({Cell: 6})),
        "",
        ("doesn't hold all that is needed", "missing along Cell: [4, 6)"),
    ),
    "a domain that leaves the output": (
        calls(lambda f: f + 1, F, out=fj.zeros({Cell: 2}), domain={Cell: 4}),
        "",
        ("`domain` leaves `out`",),
    ),
    "an output of another dtype": (
        calls(lambda f: f + 1, F, out=fj.zeros({Cell: 4}, "int32")),
        "",
        ("`out` is int32, the result is float64",),
    ),
    "a function of NumPy": (
        calls(lambda f: np.sin(f), F),
        "np.sin(f)",
        ("fieldjax.sin",),
    ),
    "a function of JAX": (calls(lambda f: jnp.sin(f), F), "jnp.sin(f)", ("fieldjax.sin",)),
    "a function of Python": (calls(lambda f: math.sin(f), F), "math.sin(f)", ("float",)),
    "too few arguments": (calls(lambda f, g: f, F), "", ("missing a required argument: 'g'",)),
    "an unknown argument": (calls(lambda f: f, F, other=1), "", ("unexpected keyword argument 'other'",)),
    "no result": (calls(lambda f: None, F), "", ("the operator returns nothing", "add a `return`")),
    "a strange result": (calls(lambda f: "f", F), "", ("not str",)),
    "a bare array": (
        calls(lambda f: f, np.ones(4)),
        "",
        ("neither a field, a scalar, nor hashable", "wrap the array"),
    ),
    "a result without end": (
        calls(lambda f: fj.broadcast(f, (Cell, K)), F),
        "",
        ("extends without end", "say what you want of it"),
    ),
    "a broadcast that loses a dimension": (
        calls(lambda f: fj.broadcast(f, (K,)), F),
        "fj.broadcast(f, (K,))",
        ("broadcast would lose Cell",),
    ),
    "iteration": (calls(lambda f: list(iter(f)), F), "f", ("can't be iterated over",)),
    "indexing": (calls(lambda f: f[0], F), "f[0]", ("can't be indexed inside an operator",)),
    "an offset that isn't one": (calls(lambda f: f(3), F), "f(3)", ("not at 3", "write f(V2E)")),
    "disagreeing bits": (
        calls(lambda f: f & 1, F),
        "f & 1",
        ("bitwise_and isn't defined for",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_say_what_where_and_what_to_do(name: str) -> None:
    call, expression, parts = CASES[name]
    with pytest.raises(fj.FieldjaxError) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert part in text, text
    if expression:
        assert f"{__file__}:" in text, text
        assert expression in text, text
        assert "^" in text, text


def test_a_broken_narrowing_shows_its_rows() -> None:
    table = [[0, 1], [5, 1], [0, 1], [5, 6]]
    mesh = {"E2C": fj.as_connectivity([Edge, E2CDim], Cell, table)}
    with pytest.raises(fj.FieldjaxError) as caught:
        calls(lambda f: f(E2C), F, offset_provider=mesh)()
    assert "1" in str(caught.value)
    assert "Edge" in str(caught.value)
    part = fj.field_operator(lambda f: f(E2C))(F, domain={Edge: (2, 3), E2CDim: 2}, offset_provider=mesh)
    assert part.asnumpy().tolist() == [[0.0, 1.0]]


def test_a_traced_table_is_an_error() -> None:
    with pytest.raises(fj.FieldjaxError, match="traced"):
        jax.jit(lambda t: fj.as_connectivity([Edge, E2CDim], Cell, t).shape)(jnp.zeros((2, 2), int))


def test_entries_that_are_no_positions_are_errors() -> None:
    with pytest.raises(fj.FieldjaxError, match="-2"):
        fj.as_connectivity([Edge, E2CDim], Cell, [[0, -2]])


def test_annotations_are_checked_where_they_are_given() -> None:
    from fieldjax.gt4py_compat import Dims, float32

    def annotated(f: fj.Field[Dims[Cell, K], float32]) -> Any:  # type: ignore[type-arg]
        return f

    namespace = {"fj": fj, "Dims": Dims, "Cell": Cell, "K": K, "float32": float32}
    annotated.__annotations__ = {"f": eval("fj.Field[Dims[Cell, K], float32]", namespace)}
    with pytest.raises(fj.FieldjaxError, match="f is annotated"):
        calls(annotated, F)()
    with pytest.raises(fj.FieldjaxError, match="but is float64"):
        calls(annotated, fj.ones({Cell: 2, K: 2}))()
    calls(annotated, fj.ones({Cell: 2, K: 2}, "float32"))()


def test_two_tables_of_one_local_dimension_do_not_mix() -> None:
    other = fj.as_connectivity([Edge, E2CDim], Cell, [[1, 0], [2, 1], [3, 2], [0, 3]])
    with pytest.raises(fj.FieldjaxError, match="two tables meet along E2C"):
        calls(lambda f, c: f(E2C) + f(c), F, other)()


X64_OFF = [
    ("import numpy as np; fj.as_field({Cell: 3}, np.ones(3))", "float64"),
    ("import numpy as np; fj.as_field({Cell: 3}, np.arange(3))", "int64"),
    ("fj.zeros({Cell: 3}, 'float64')", "float64"),
    ("import numpy as np; f * np.float64(2)", "float64"),
    ("import numpy as np; fj.field_operator(lambda f, s: f * s)(f, np.float64(2))", "float64"),
    ("import numpy as np; fj.jit(lambda f, s: f * s)(f, np.float64(2))", "float64"),
    ("f.astype('float64')", "float64"),
    ("m = fj.record().__enter__(); m.input('f', f).astype('float64')", "float64"),
]


@pytest.mark.parametrize(("code", "dtype"), X64_OFF)
def test_nothing_is_truncated_while_x64_is_off(code: str, dtype: str, run_python: Any) -> None:
    source = f"""
import fieldjax as fj
Cell = fj.Dimension("Cell")
f = fj.as_field({{Cell: 3}}, [1.0, 2.0, 3.0])
assert f.dtype == "float32" and (2 * f).dtype == "float32" and (f * 0.1).dtype == "float32"
try:
    {code}
except fj.FieldjaxError as error:
    assert "{dtype}" in str(error) and "jax_enable_x64" in str(error), str(error)
else:
    raise SystemExit("nothing was said")
"""
    run_python(source, x64=False)
