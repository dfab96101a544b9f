"""`scan_operator`: a function from one level to the next, run along columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from fieldjax.domain import Dimension, DimensionKind
from fieldjax.errors import ArgumentError, DimensionError, TracingError, user_location
from fieldjax.frontend.containers import flatten, is_data, unflatten
from fieldjax.frontend.execution import JAX
from fieldjax.frontend.operator import FieldOperator
from fieldjax.frontend.options import CompilationOptions
from fieldjax.frontend.scan_body import Definition
from fieldjax.frontend.traced import TracedField, TracedTable, common_scope, located, value_of
from fieldjax.ir.build import adopt_masks
from fieldjax.ir.operation import record
from fieldjax.ir.operations.scan import Scan


class ScanOperator(FieldOperator):
    """A function from the carry of one level, and the arguments there, to the carry of the next.

    Called like a field operator, on fields, scalars and containers of them, with `out=` or `domain=`, inside
    operators or directly. The result is structured like the carry and holds it at every level. It lives on
    the arguments' dimensions and the axis.

    The column begins and ends with the outputs: with `domain=` or `out=` of the call around, and else where
    the arguments do. The first level starts from `init` (the last level, when not `forward`).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        axis: Dimension,
        forward: bool = True,
        init: Any = 0.0,
        backend: str | None = JAX,
        options: CompilationOptions = CompilationOptions(),  # noqa: B008 (it is frozen)
    ) -> None:
        _check_definition(function, axis, init)
        self.definition, self.axis, self.forward, self.init = function, axis, forward, init
        super().__init__(function, backend, options)

    def _renew(self) -> None:
        super()._renew()
        self.function = self._scan

    def _signature(self) -> inspect.Signature:
        """That of the body without the carry."""
        signature = inspect.signature(self.definition)
        first, *others = signature.parameters.values()
        is_variadic = first.kind is inspect.Parameter.VAR_POSITIONAL
        return signature.replace(parameters=[first, *others] if is_variadic else others)

    @property
    def _annotated(self) -> Callable[..., Any]:
        return self.definition

    def _scan(self, *args: Any, **kwargs: Any) -> Any:
        """Records the scan on recorded arguments."""
        location = user_location()
        outer = common_scope(flatten((args, kwargs))[0])
        if outer.outer is not None:
            raise TracingError(
                "a scan is called inside the body of a scan",
                location=location,
                hints=["call one after the other: a body works on numbers at one level"],
            )
        leaves, tree = flatten(self.init)
        initial = tuple(located(lambda x=x: value_of(x, outer)) for x in leaves)
        body = Definition(self.definition, tuple(leaves), initial, tree).record(args, kwargs, outer)
        values = located(lambda: adopt_masks((*initial, *body.arguments), location))
        operation = Scan(body.graph, self.axis, self.forward, len(leaves))
        results = located(lambda: record(operation, *values, location=location))
        return unflatten(tree, [TracedField(v, outer) for v in results[len(leaves) :]])


def _check_definition(function: Callable[..., Any], axis: Dimension, init: Any) -> None:
    where = user_location()
    if not isinstance(axis, Dimension) or axis.kind is DimensionKind.LOCAL:
        raise DimensionError(
            f"a scan runs along levels, not along {axis!r}",
            location=where,
            hints=["name a dimension: `scan_operator(axis=K, ...)`"],
        )
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or first.kind not in kinds:
        raise ArgumentError(
            f"{getattr(function, '__name__', 'the body')} takes no carry",
            location=where,
            hints=["the first parameter is what the level before returned"],
        )
    leaves, _ = flatten(init)
    strange = next((x for x in leaves if not is_data(x) or isinstance(x, TracedTable)), None)
    if strange is not None or not leaves:
        raise ArgumentError(
            f"a scan starts from numbers, or containers of numbers, not from {init!r}",
            location=where,
            hints=["give `init`, structured like what the body returns"],
        )


@overload
def scan_operator(
    definition: Callable[..., Any],
    /,
    *,
    axis: Dimension,
    forward: bool = ...,
    init: Any = ...,
    backend: str | None = ...,
    grid_type: Any = ...,
    **options: Any,
) -> ScanOperator: ...
@overload
def scan_operator(
    *,
    axis: Dimension,
    forward: bool = ...,
    init: Any = ...,
    backend: str | None = ...,
    grid_type: Any = ...,
    **options: Any,
) -> Callable[[Callable[..., Any]], ScanOperator]: ...
def scan_operator(
    definition: Any = None,
    /,
    *,
    axis: Dimension,
    forward: bool = True,
    init: Any = 0.0,
    backend: str | None = JAX,
    grid_type: Any = None,
    **options: Any,
) -> Any:
    """Makes a scan of a function: one loop along `axis`, over all columns at once.

    The function gets the carry, which is `init` at the first level (the last, when not `forward`), and each
    argument's value at the level; it returns the new carry. A carry is a number, or a tuple, named tuple or
    dataclass of carries. Its dtype is what `init` and the body promote to; Python numbers in `init` take that
    of the body. `backend`, `grid_type` and `options` as in `field_operator`.

    Raises:
        DimensionError: `axis` isn't a dimension, or counts neighbours.
        ArgumentError: the function takes no carry, or `init` isn't made of numbers; when it is called: it
            doesn't return a carry structured like `init`.
        DtypeError: when it is called: the carry's dtype can't hold its initial value.

    >>> import fieldjax as fj
    >>> K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
    >>> @fj.scan_operator(axis=K, init=0.0)
    ... def total(above, f):
    ...     return above + f
    >>> total(fj.as_field({K: 4}, [1.0, 2.0, 3.0, 4.0])).asnumpy().tolist()
    [1.0, 3.0, 6.0, 10.0]
    """
    chosen = CompilationOptions.of(**options)

    def make(function: Callable[..., Any]) -> ScanOperator:
        return ScanOperator(function, axis, forward, init, backend, chosen)

    return make if definition is None else make(definition)
