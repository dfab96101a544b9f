"""What must hold of the derivatives of any graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from fieldjax.domain import Domain
from fieldjax.ir.build import pointwise
from fieldjax.ir.derivative import jvp, vjp
from fieldjax.ir.graph import Graph
from fieldjax.ir.inference import infer
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.types import FieldType
from tests.strategies.graphs import compiled, on_jax, on_numpy

STEP = 1e-5


def assert_derivatives(
    graph: Graph,
    places: Sequence[Place],
    arrays: Sequence[Any],
    wrt: Sequence[int],
    specified: np.ndarray,
    wanted: Domain | None = None,
    second: bool = True,
) -> None:
    """The IR's derivatives, on NumPy and on JAX, are `jax.jvp`'s and `jax.vjp`'s and the float64 differences;
    reverse is the transpose of forward; a number that is added to an input gets the sum of the input's cotangent;
    the IR's derivatives of its derivatives are JAX's second derivative.

    `graph` has one output, of which the elements that aren't `specified` count for nothing.
    """
    check = _Check(graph, list(places), list(arrays), list(wrt), specified, wanted)
    check.forward()
    check.reverse()
    check.dot_product()
    check.added_number()
    if second:
        check.second_order()


class _Check:
    def __init__(
        self,
        graph: Graph,
        places: list[Place],
        arrays: list[Any],
        wrt: list[int],
        specified: np.ndarray,
        wanted: Domain | None,
    ) -> None:
        self.graph, self.places, self.arrays, self.wrt = graph, places, arrays, wrt
        self.specified, self.wanted = specified, [wanted]
        self.seeds = [places[n] for n in wrt]
        self.function = compiled(graph, places, self.wanted)
        dtype = graph.outputs[0].field_type.dtype
        rng = np.random.default_rng(0)
        self.tangents = [np.asarray(rng.normal(size=arrays[n].shape), arrays[n].dtype) for n in wrt]
        self.cotangent = np.where(specified, rng.normal(size=specified.shape), 0).astype(dtype)
        self.is_double = all(d == np.float64 for d in [dtype, *(t.dtype for t in self.tangents)])
        self.rounding = 1e-11 if self.is_double else 1e-4

    @cached_property
    def tangent_graph(self) -> Graph:
        return jvp(self.graph, self.wrt)

    @cached_property
    def reverse_graph(self) -> Graph:
        return vjp(self.graph, self.wrt)

    @cached_property
    def reverse_places(self) -> list[Place]:
        return [*self.places, infer(self.graph, self.places, self.wanted).outputs[0]]

    @cached_property
    def tangent(self) -> Any:
        """The IR's, on NumPy."""
        inputs = [*self.arrays, *self.tangents]
        return on_numpy(self.tangent_graph, [*self.places, *self.seeds], inputs, self.wanted)[0]

    @cached_property
    def cotangents(self) -> Sequence[Any]:
        """The IR's, on NumPy."""
        return on_numpy(self.reverse_graph, self.reverse_places, [*self.arrays, self.cotangent])

    def of(self, *x: Any) -> Any:
        """The output's array, as a function of the inputs at `wrt`."""
        return self.function(*self.with_inputs(x))[0]

    def with_inputs(self, x: Sequence[Any]) -> list[Any]:
        arrays = list(self.arrays)
        for n, array in zip(self.wrt, x, strict=True):
            arrays[n] = array
        return arrays

    @cached_property
    def by_jax(self) -> Any:
        """JAX's tangent, cotangents and their derivative; and the IR's tangent and cotangents on JAX."""

        @jax.jit
        def derivatives(x: Any, t: Any, ct: Any) -> Any:
            def gradients(*x: Any) -> Any:
                return jax.vjp(self.of, *x)[1](ct)

            tangent = jax.jvp(self.of, x, t)[1]
            back, second = jax.jvp(gradients, x, t)
            arrays = self.with_inputs(x)
            (mine,) = on_jax(self.tangent_graph, [*self.places, *self.seeds], [*arrays, *t], self.wanted)
            return tangent, back, second, mine, on_jax(self.reverse_graph, self.reverse_places, [*arrays, ct])

        x = tuple(self.arrays[n] for n in self.wrt)
        return jax.tree.map(np.asarray, derivatives(x, tuple(self.tangents), self.cotangent))

    def close(self, found: Any, expected: Any, rounding: float) -> None:
        size = max(1.0, float(np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding * size)

    def forward(self) -> None:
        tangent, _, _, on_jax, _ = self.by_jax
        for found in (self.tangent, on_jax):
            assert found.dtype == tangent.dtype
            self.close(found[self.specified], tangent[self.specified], self.rounding)
        if self.is_double:
            difference = self.difference()
            smooth = self.specified & np.isfinite(difference)  # a row without neighbours gives -inf twice
            self.close(self.tangent[smooth], difference[smooth], 1e-6)

    def difference(self) -> Any:
        x = [self.arrays[n] for n in self.wrt]
        up, down = ([v + s * STEP * t for v, t in zip(x, self.tangents, strict=True)] for s in (1, -1))
        with np.errstate(invalid="ignore"):
            return (np.asarray(self.of(*up)) - np.asarray(self.of(*down))) / (2 * STEP)

    def reverse(self) -> None:
        _, back, _, _, on_jax = self.by_jax
        for found in (self.cotangents, on_jax):
            for mine, jaxs in zip(found, back, strict=True):
                assert (mine.shape, mine.dtype) == (jaxs.shape, jaxs.dtype)
                self.close(mine, jaxs, self.rounding)

    def dot_product(self) -> None:
        pairs = list(zip(self.cotangents, self.tangents, strict=True))
        forward = np.vdot(self.cotangent, np.where(self.specified, self.tangent, 0))
        size = sum(float(np.abs(c * t).sum()) for c, t in pairs)
        error = abs(forward - sum(np.vdot(c, t) for c, t in pairs))
        assert error <= (1e-12 if self.is_double else 1e-4) * max(1.0, size)

    def added_number(self) -> None:
        """Fails where the cotangent of an input also has elements that the input doesn't have."""
        for n, cotangent in zip(self.wrt, self.cotangents, strict=True):
            x = self.graph.inputs[n]
            (number,) = record(Parameter("number", FieldType((), x.field_type.dtype)))
            new = {x: pointwise("add", x, number)}
            for node in self.graph.nodes:
                if node not in self.graph.given and (made := node.reading(new)) is not node:
                    new.update(zip(node.results(), made.results(), strict=True))
            graph = Graph((*self.graph.inputs, number), tuple(new.get(v, v) for v in self.graph.outputs))
            arrays = [*self.arrays, np.zeros((), x.field_type.dtype), self.cotangent]
            places = [*self.places, Domain(), self.reverse_places[-1]]
            (found,) = on_numpy(vjp(graph, [len(self.arrays)]), places, arrays)
            self.close(found, cotangent.sum(), 10 * self.rounding)

    def second_order(self) -> None:
        """jvp of vjp, vjp of vjp and jvp of jvp, against the derivative of JAX's gradient along the tangents."""
        expected = self.by_jax[2]
        arrays, places = [*self.arrays, self.cotangent, *self.tangents], [*self.reverse_places, *self.seeds]
        for again in (jvp, vjp):
            found = on_numpy(again(self.reverse_graph, self.wrt), places, arrays)
            for mine, jaxs in zip(found, expected, strict=True):
                self.close(mine, jaxs, 10 * self.rounding)
        ahead = jvp(self.tangent_graph, self.wrt)
        inputs = [*self.arrays, *self.tangents, *self.tangents]
        (twice,) = on_numpy(ahead, [*self.places, *self.seeds, *self.seeds], inputs, self.wanted)
        curvature = sum(np.vdot(e, t) for e, t in zip(expected, self.tangents, strict=True))
        self.close(np.vdot(self.cotangent, np.where(self.specified, twice, 0)), curvature, 100 * self.rounding)
