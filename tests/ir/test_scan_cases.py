"""Random scans: arguments on any dimensions, parts asked for, against one Python loop per column."""

import itertools
from dataclasses import dataclass

import jax
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Domain
from fieldjax.ir import derivative
from fieldjax.ir.build import Expression
from fieldjax.ir.graph import Graph
from fieldjax.ir.inference import infer
from fieldjax.ir.operation import record
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.operations.scan import Scan
from fieldjax.ir.types import FieldType
from tests.strategies.graphs import compiled, on_jax, on_numpy

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
FLOAT = np.dtype("float64")
few = settings(max_examples=max(4, settings.default.max_examples // 3))


@dataclass(frozen=True)
class Case:
    """`carry, other = f(carry, other, *arguments)` with an initial value for each."""

    forward: bool
    places: tuple[Domain, ...]
    """Of the two initial values, then of the arguments."""
    asked: Domain | None

    @property
    def arrays(self):
        rng = np.random.default_rng(len(self.places))
        return [rng.uniform(0.5, 1.5, p.shape) for p in self.places]

    @property
    def graph(self):
        """Of the results, the second one alone: the first still matters, since it is carried."""
        inputs = [record(Parameter(f"x{n}", FieldType(p.dims, FLOAT)))[0] for n, p in enumerate(self.places)]
        numbers = [record(Parameter(f"n{n}", FieldType((), FLOAT)))[0] for n in range(len(self.places))]
        new = [x.value for x in step(*map(Expression, numbers), sin=lambda x: x.build("sin", x))]
        results = record(Scan(Graph(tuple(numbers), (*new, *new)), K, self.forward, 2), *inputs)
        return Graph(tuple(inputs), (results[3],))

    @property
    def available(self):
        found = fj.domain({K: (-10, 10)})
        for place in self.places:
            found = found & place
        return found

    @property
    def expected(self):
        domain = self.asked or self.available
        result = np.zeros(domain.shape)
        columns = domain.without(K)
        for column in itertools.product(*columns.ranges):
            self._column(dict(zip(columns.dims, column, strict=True)), domain, result)
        return result

    def _column(self, at, domain, result):
        levels = list(domain.range_of(K))
        carries = [self._read(n, at) for n in (0, 1)]
        for k in levels if self.forward else levels[::-1]:
            arguments = [self._read(n, {**at, K: k}) for n in range(2, len(self.places))]
            carries = step(*carries, *arguments, sin=np.sin)
            here = {**at, K: k}
            result[tuple(here[d] - r.start for d, r in zip(domain.dims, domain.ranges, strict=True))] = carries[1]

    def _read(self, n, at):
        place = self.places[n]
        return self.arrays[n][tuple(at[d] - r.start for d, r in zip(place.dims, place.ranges, strict=True))]


def step(first, second, *arguments, sin):
    """Both carries depend on both, and on every argument."""
    total = first * 0.5
    for n, x in enumerate(arguments):
        total = total + x * second if n % 2 else total - sin(x)
    return sin(total), first + second * total


@st.composite
def cases(draw):
    def place(*dims):
        start = {d: draw(st.integers(-1, 1)) for d in dims}
        return fj.domain({d: (start[d], start[d] + draw(st.integers(3, 4))) for d in dims})

    flat = st.sampled_from([(), (Cell,), (Edge,), (Cell, Edge)])
    arguments = draw(st.lists(st.sampled_from([(Cell, K), (K,), (Cell,), (), (Edge, K)]), min_size=1, max_size=3))
    if not any(K in dims for dims in arguments):
        arguments[0] = (Cell, K)
    places = tuple(place(*dims) for dims in (draw(flat), draw(flat), *arguments))
    case = Case(draw(st.booleans()), places, None)
    if draw(st.booleans()):
        ranges = []
        for r in case.available.ranges:
            low = draw(st.integers(r.start, r.stop)) if not r.is_empty() else 0
            ranges.append((low, draw(st.integers(low, r.stop)) if not r.is_empty() else 0))
        case = Case(case.forward, places, fj.domain(dict(zip(case.available.dims, ranges, strict=True))))
    return case


@given(cases())
def test_values(case):
    for run in (on_numpy, on_jax):
        (found,) = run(case.graph, case.places, case.arrays, [case.asked])
        np.testing.assert_allclose(found, case.expected, rtol=1e-12, atol=1e-14)


@few
@given(cases())
def test_values_and_derivatives_compiled(case):
    arrays, wanted = case.arrays, [case.asked]
    run = compiled(case.graph, case.places, wanted)
    (found,) = run(*arrays)
    np.testing.assert_allclose(found, case.expected, rtol=1e-12, atol=1e-14)
    rng, wrt = np.random.default_rng(0), range(len(arrays))
    tangents = [rng.normal(size=a.shape) for a in arrays]
    cotangent = rng.normal(size=found.shape)
    _, (along,) = jax.jvp(run, tuple(arrays), tuple(tangents))
    forward = derivative.jvp(case.graph, wrt)
    (mine,) = on_numpy(forward, case.places * 2, [*arrays, *tangents], wanted)
    np.testing.assert_allclose(mine, along, rtol=1e-10, atol=1e-11)
    place = infer(case.graph, case.places, wanted).outputs[0]
    reverse = derivative.vjp(case.graph, wrt, asked=(0,) if case.asked else ())
    mine = on_numpy(reverse, [*case.places, place], [*arrays, cotangent])
    theirs = jax.vjp(run, *arrays)[1]((jax.numpy.asarray(cotangent),))
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-11)
