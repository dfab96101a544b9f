"""Scans in the IR: values by a naive loop, columns, derivatives to second order, identity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.domain import Domain
from fieldjax.errors import DimensionError, DomainError
from fieldjax.ir import derivative
from fieldjax.ir.build import Expression, literal
from fieldjax.ir.graph import Graph
from fieldjax.ir.inference import infer
from fieldjax.ir.key import structural_key
from fieldjax.ir.operation import record
from fieldjax.ir.operations.concat import ConcatWhere
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.operations.scan import Scan
from fieldjax.ir.simplify import simplify
from fieldjax.ir.types import FieldType
from tests.strategies.graphs import compiled, on_jax, on_numpy

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
COLUMNS, LEVELS = 3, 5
WHOLE, FLAT, COLUMN = (fj.domain(d) for d in ({Cell: COLUMNS, K: LEVELS}, {Cell: COLUMNS}, {K: LEVELS}))
WAYS = pytest.mark.parametrize("run", [on_numpy, on_jax, lambda g, p, a, w=None: compiled(g, p, w)(*a)])
DIRECTIONS = pytest.mark.parametrize("forward", [True, False])


def parameter(name, *dims, dtype="float64"):
    return record(Parameter(name, FieldType(dims, np.dtype(dtype))))[0]


def body(names=("carry", "a", "b")):
    """Emits `sin(carry * a + b)`, and carries it on."""
    carry, a, b = map(parameter, names)
    c = Expression(carry)
    new = (c * Expression(a) + Expression(b)).build("sin", c * Expression(a) + Expression(b)).value
    return Graph((carry, a, b), (new, new))


def scanned(forward=True, initial=(Cell,), first=(Cell, K), second=(Cell,), the_body=None):
    """The graph of one scan: inputs a, b and the initial value."""
    inputs = parameter("a", *first), parameter("b", *second), parameter("z", *initial)
    results = record(Scan(the_body or body(), K, forward, 1), inputs[2], *inputs[:2])
    return Graph(inputs, (results[1],))


def by_hand(a, b, z, forward=True):
    out, carry = np.zeros((COLUMNS, LEVELS)), z
    for k in range(LEVELS) if forward else reversed(range(LEVELS)):
        level_b = b[..., k] if b.shape[-1:] == (LEVELS,) else b
        carry = np.sin(carry * (a[..., k] if a.shape[-1:] == (LEVELS,) else a) + level_b)
        out[:, k] = carry
    return out


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


INPUTS = (numbers(COLUMNS, LEVELS), numbers(COLUMNS, seed=1), numbers(COLUMNS, seed=2))
PLACES = [WHOLE, FLAT, FLAT]


@WAYS
@DIRECTIONS
def test_every_way_gives_what_a_loop_gives(run, forward):
    (result,) = run(scanned(forward), PLACES, INPUTS)
    np.testing.assert_allclose(result, by_hand(*INPUTS, forward), rtol=1e-14)


@WAYS
def test_arguments_without_the_axis_or_without_the_columns(run):
    a, b, z = numbers(COLUMNS), numbers(LEVELS, seed=1), numbers(seed=2)
    graph = scanned(initial=(), first=(Cell,), second=(K,))
    (result,) = run(graph, [FLAT, COLUMN, Domain()], [a, b, z])
    np.testing.assert_allclose(result, by_hand(a, b, z), rtol=1e-14)


@WAYS
def test_the_carry_after_the_last_level(run):
    graph = scanned()
    (last,) = run(Graph(graph.inputs, (graph.outputs[0].node.results()[0],)), PLACES, INPUTS)
    np.testing.assert_allclose(last, by_hand(*INPUTS)[:, -1], rtol=1e-14)


@WAYS
@pytest.mark.parametrize("domain", [{Cell: COLUMNS, K: (2, 2)}, {Cell: (1, 1), K: LEVELS}])
def test_empty_columns_and_no_columns(run, domain):
    wanted = fj.domain(domain)
    (result,) = run(scanned(), PLACES, INPUTS, [wanted])
    assert result.shape == wanted.shape


# The column


def shifted(offset):
    """`r[k + offset] - r[k]` of a scan r."""
    graph = scanned()
    (moved,) = record(Shift(K, offset, K), graph.outputs[0])
    return Graph(graph.inputs, ((Expression(moved) - Expression(graph.outputs[0])).value,))


def column_of(graph, wanted):
    plan = infer(graph, PLACES, [wanted])
    scan = next(n for n in graph.nodes if isinstance(n.operation, Scan))
    return plan.domain(scan.results()[1])


def test_the_column_is_what_is_asked_for():
    assert column_of(scanned(), fj.domain({Cell: (1, 2), K: (1, 4)})) == fj.domain({Cell: (1, 2), K: (1, 4)})


def test_all_of_the_column_is_computed_whatever_part_is_read():
    graph = scanned()
    chosen = record(ConcatWhere(K == 3), graph.outputs[0], literal(0.0))
    assert column_of(Graph(graph.inputs, chosen), fj.domain({Cell: COLUMNS, K: (1, 5)})).range_of(K) == fj.unit_range(
        (1, 5)
    )


def test_the_column_reaches_as_far_as_all_outputs_together():
    graph = scanned()
    (above,) = record(Shift(K, -1, K), graph.outputs[0])
    asked = [fj.domain({Cell: COLUMNS, K: span}) for span in ((0, 2), (1, 4))]
    plan = infer(Graph(graph.inputs, (graph.outputs[0], above)), PLACES, asked)
    assert plan.domain(graph.outputs[0]).range_of(K) == fj.unit_range((0, 4))


def test_what_is_not_asked_for_runs_as_far_as_the_arguments():
    assert column_of(shifted(1), None) == WHOLE
    (result,) = on_numpy(shifted(1), PLACES, INPUTS)
    np.testing.assert_allclose(result, np.diff(by_hand(*INPUTS), axis=1), rtol=1e-12)


@pytest.mark.parametrize(("offset", "asked", "missing"), [(1, (0, 4), "4"), (-1, (1, 5), "0"), (-1, (2, 5), "1")])
def test_a_reader_at_another_level_does_not_enlarge_the_column(offset, asked, missing):
    with pytest.raises(DomainError, match=f"K {missing}\n") as caught:
        column_of(shifted(offset), fj.domain({Cell: COLUMNS, K: asked}))
    assert f"the column is K[{asked[0]}:{asked[1]})" in str(caught.value)


def test_a_column_without_extent():
    graph = scanned(first=(Cell,))
    with pytest.raises(DomainError, match="without end"):
        infer(graph, [FLAT, FLAT, FLAT], [None])
    wanted = fj.domain({Cell: COLUMNS, K: (2, 4)})
    assert on_numpy(graph, [FLAT] * 3, [numbers(COLUMNS)] * 3, [wanted])[0].shape == (3, 2)


def test_the_axis_is_not_local_and_the_initial_value_lacks_it():
    local = fj.Dimension("C2E", fj.DimensionKind.LOCAL)
    a = parameter("a", Cell, K)
    with pytest.raises(DimensionError, match="counts neighbours"):
        record(Scan(body(), local, True, 1), literal(0.0), a, a)
    with pytest.raises(DimensionError, match="initial value"):
        record(Scan(body(), K, True, 1), a, a, a)


# Derivatives


def on_arrays(graph, places, wanted=None):
    return lambda *arrays: on_jax(graph, places, arrays, wanted)[0]


def like(arrays, seed):
    return [np.random.default_rng(seed + n).normal(size=np.shape(a)) for n, a in enumerate(arrays)]


CASES = pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        (scanned(), None),
        (scanned(forward=False), None),
        (scanned(), {Cell: (1, 3), K: (1, 4)}),
        (shifted(1), None),
        (shifted(-1), None),
    ],
    ids=["forward", "backward", "part", "above", "below"],
)


@CASES
def test_the_forward_derivative(graph, wanted):
    asked = None if wanted is None else [fj.domain(wanted)]
    tangents = like(INPUTS, 10)
    (got,) = on_numpy(derivative.jvp(graph, [0, 1, 2]), PLACES * 2, [*INPUTS, *tangents], asked)
    _, expected = jax.jvp(on_arrays(graph, PLACES, asked), INPUTS, tuple(tangents))
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


@CASES
def test_the_reverse_derivative(graph, wanted):
    asked = None if wanted is None else [fj.domain(wanted)]
    function = on_arrays(graph, PLACES, asked)
    primal, pull = jax.vjp(function, *INPUTS)
    (cotangent,) = like([primal], 20)
    reverse = derivative.vjp(graph, [0, 1, 2], asked=() if asked is None else (0,))
    place = infer(graph, PLACES, asked or [None]).outputs[0]
    got = on_numpy(reverse, [*PLACES, place], [*INPUTS, cotangent])
    for mine, theirs in zip(got, pull(jnp.asarray(cotangent)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def test_reverse_is_the_transpose_of_forward():
    graph, tangents = scanned(), like(INPUTS, 30)
    (out,) = on_numpy(derivative.jvp(graph, [0, 1, 2]), PLACES * 2, [*INPUTS, *tangents])
    (cotangent,) = like([out], 40)
    back = on_numpy(derivative.vjp(graph, [0, 1, 2]), [*PLACES, WHOLE], [*INPUTS, cotangent])
    inner = sum(np.vdot(x, y) for x, y in zip(back, tangents, strict=True))
    np.testing.assert_allclose(inner, np.vdot(cotangent, out), rtol=1e-12)


def test_derivatives_of_derivatives():
    graph = scanned()
    reverse = derivative.vjp(graph, [0, 1, 2])
    (cotangent,) = like([by_hand(*INPUTS)], 50)
    given, places = [*INPUTS, cotangent], [*PLACES, WHOLE]

    def pull(*arrays):
        return jax.vjp(on_arrays(graph, PLACES), *arrays[:3])[1](arrays[3])

    tangents = like(given, 60)
    got = on_numpy(derivative.jvp(reverse, range(4)), places * 2, [*given, *tangents])
    _, expected = jax.jvp(pull, tuple(map(jnp.asarray, given)), tuple(tangents))
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
    seeds = like(INPUTS, 70)
    got = on_numpy(derivative.vjp(reverse, range(4)), [*places, *PLACES], [*given, *seeds])
    expected = jax.vjp(pull, *map(jnp.asarray, given))[1](tuple(map(jnp.asarray, seeds)))
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_what_stands_beside_the_result_does_not_reach_the_gradient():
    a, b, z = (x.copy() for x in INPUTS)
    a[0], b[0], z[0] = np.nan, np.nan, np.nan
    part = fj.domain({Cell: (1, 3), K: LEVELS})
    reverse = derivative.vjp(scanned(), [0, 1, 2], asked=(0,))
    for cotangent in on_numpy(reverse, [*PLACES, part], [a, b, z, np.ones(part.shape)]):
        assert np.isfinite(cotangent).all()


# Identity


def test_equal_scans_are_computed_once():
    inputs = parameter("a", Cell, K), parameter("b", Cell), parameter("z", Cell)
    results = [record(Scan(body(), K, True, 1), inputs[2], *inputs[:2])[1] for _ in range(2)]
    graph = Graph(inputs, ((Expression(results[0]) + Expression(results[1])).value,))
    assert len([n for n in simplify(graph).nodes if isinstance(n.operation, Scan)]) == 1


def test_the_key_tells_bodies_apart_but_not_names():
    one, same = scanned(), scanned(the_body=body(("x", "y", "z")))
    flipped = body()
    flipped = Graph((flipped.inputs[0], flipped.inputs[2], flipped.inputs[1]), flipped.outputs)
    assert structural_key(one) == structural_key(same)
    assert structural_key(one) != structural_key(scanned(the_body=flipped))
    assert structural_key(one) != structural_key(scanned(forward=False))


def test_the_text_names_axis_and_direction():
    assert "scan[K backward] %z %a %b" in str(scanned(forward=False))
