"""What must hold of the derivatives of any graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fieldjax.domain import Domain
from fieldjax.ir.derivative import jvp, vjp
from fieldjax.ir.graph import Graph
from fieldjax.ir.operation import Place
from tests.strategies.graphs import compiled, on_numpy

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
    """The IR's derivatives are JAX's and the float64 differences; reverse is the transpose of forward.

    `graph` has one output, of which the elements that aren't `specified` count for nothing.
    """
    check = _Check(graph, list(places), list(arrays), list(wrt), specified, wanted)
    check.forward_and_reverse()
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
        self.graph, self.places, self.wrt, self.specified = graph, places, wrt, specified
        self.arrays = [a.astype(a.dtype) for a in map(np.asarray, arrays)]
        self.wanted = [wanted]
        (output,) = graph.outputs
        rng = np.random.default_rng(0)
        self.tangents = [rng.normal(size=arrays[n].shape).astype(arrays[n].dtype) for n in wrt]
        cotangent = rng.normal(size=specified.shape).astype(output.field_type.dtype)
        self.cotangent = np.where(specified, cotangent, 0).astype(cotangent.dtype)
        narrow = [output.field_type.dtype, *(arrays[n].dtype for n in wrt)]
        self.is_double = all(d == np.float64 for d in narrow)
        self.rounding = 1e-11 if self.is_double else 1e-4
        self.function = compiled(graph, places, self.wanted)

    def of(self, *x: Any) -> Any:
        """The output's array, as a function of the inputs at `wrt`."""
        arrays = list(self.arrays)
        for n, array in zip(self.wrt, x, strict=True):
            arrays[n] = array
        return self.function(*arrays)[0]

    @property
    def point(self) -> list[Any]:
        return [self.arrays[n] for n in self.wrt]

    def close(self, found: Any, expected: Any, rounding: float | None = None) -> None:
        rounding = rounding or self.rounding
        np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding * self.scale(expected))

    @staticmethod
    def scale(expected: Any) -> float:
        return max(1.0, float(np.abs(expected).max(initial=0.0)))

    def forward_and_reverse(self) -> None:
        by_jax, back_by_jax, _ = self.by_jax()
        tangent = self.forward(self.graph, self.wanted, self.wrt)
        self.close(tangent[self.specified], by_jax[self.specified])
        if self.is_double:
            difference = self.difference()
            smooth = self.specified & np.isfinite(difference)  # not so where nothing gives -inf
            self.close(tangent[smooth], difference[smooth], 1e-6)
        back = self.reverse(self.graph)
        for mine, jaxs in zip(back, back_by_jax, strict=True):
            assert mine.shape == jaxs.shape and mine.dtype == jaxs.dtype
            self.close(mine, jaxs)
        self.dot_product(tangent, back)

    def by_jax(self) -> tuple[Any, Any, Any]:
        """JAX's tangent, cotangents, and the derivative of the cotangents along the tangents."""

        @jax.jit
        def derivatives(x: Any, t: Any, ct: Any) -> Any:
            def gradients(*x: Any) -> Any:
                return jax.vjp(self.of, *x)[1](ct)

            tangent = jax.jvp(self.of, tuple(x), tuple(t))[1]
            back, second = jax.jvp(gradients, tuple(x), tuple(t))
            return tangent, back, second

        found = derivatives(self.point, self.tangents, self.cotangent)
        return jax.tree.map(np.asarray, found)

    def forward(self, graph: Graph, wanted: Any, wrt: Sequence[int]) -> Any:
        derivative = jvp(graph, wrt)
        places = [*self.places, *(self.places[n] for n in self.wrt)]
        return on_numpy(derivative, places, [*self.arrays, *self.tangents], wanted)[0]

    def reverse_places(self) -> list[Any]:
        output = Domain(dims=self.graph.outputs[0].dims, ranges=self.output_domain().ranges)
        return [*self.places, output]

    def output_domain(self) -> Domain:
        from fieldjax.ir.inference import infer

        return infer(self.graph, self.places, self.wanted).outputs[0]

    def reverse(self, graph: Graph) -> Sequence[Any]:
        derivative = vjp(graph, self.wrt)
        return on_numpy(derivative, self.reverse_places(), [*self.arrays, self.cotangent])

    def difference(self) -> Any:
        up = [x + STEP * t for x, t in zip(self.point, self.tangents, strict=True)]
        down = [x - STEP * t for x, t in zip(self.point, self.tangents, strict=True)]
        with np.errstate(invalid="ignore"):
            return (np.asarray(self.of(*up)) - np.asarray(self.of(*down))) / (2 * STEP)

    def dot_product(self, tangent: Any, back: Sequence[Any]) -> None:
        forward = np.vdot(self.cotangent, np.where(self.specified, tangent, 0))
        reverse = sum(np.vdot(b, t) for b, t in zip(back, self.tangents, strict=True))
        size = sum(float(np.abs(b * t).sum()) for b, t in zip(back, self.tangents, strict=True))
        assert abs(forward - reverse) <= (1e-12 if self.is_double else 1e-4) * max(1.0, size)

    def second_order(self) -> None:
        """jvp of vjp, vjp of vjp and jvp of jvp, each against JAX's forward-over-reverse product."""
        expected = self.by_jax()[2]
        reverse = vjp(self.graph, self.wrt)
        arrays, places = [*self.arrays, self.cotangent], self.reverse_places()
        moved = on_numpy(
            jvp(reverse, self.wrt), [*places, *(self.places[n] for n in self.wrt)], [*arrays, *self.tangents]
        )
        for mine, jaxs in zip(moved, expected, strict=True):
            self.close(mine, jaxs, 10 * self.rounding)
        twice = vjp(reverse, self.wrt)
        seeds = [self.places[n] for n in self.wrt]
        for mine, jaxs in zip(
            on_numpy(twice, [*places, *seeds], [*arrays, *self.tangents]), expected, strict=True
        ):
            self.close(mine, jaxs, 10 * self.rounding)
        ahead = jvp(self.graph, self.wrt)
        again = on_numpy(
            jvp(ahead, self.wrt),
            [*self.places, *seeds, *seeds],
            [*self.arrays, *self.tangents, *self.tangents],
            self.wanted,
        )[0]
        curvature = sum(np.vdot(e, t) for e, t in zip(expected, self.tangents, strict=True))
        self.close(np.vdot(self.cotangent, np.where(self.specified, again, 0)), curvature, 100 * self.rounding)
