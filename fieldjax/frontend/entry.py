"""What operators and programs have in common: a backend, options, bound arguments, compiling ahead of time."""

from __future__ import annotations

import abc
import copy
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from fieldjax.connectivity import Provider, as_provider, is_table
from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.annotations import check_scalar
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.execution import Execution, Stats
from fieldjax.frontend.lowering import Lowered
from fieldjax.frontend.options import CompilationOptions
from fieldjax.frontend.parameters import Parameters, static_value
from fieldjax.frontend.recording import Recording
from fieldjax.frontend.traced import located
from fieldjax.frontend.variants import Variant, Variants
from fieldjax.ir.plan import Plan
from fieldjax.ir.text import to_text


class Planned(NamedTuple):
    """One call, planned: what is to be run, on what, and where the results go."""

    recording: Recording
    plan: Plan
    inputs: list[Any]
    numpy: bool
    """Whether all data is NumPy's."""
    fields: list[Field] | None
    """The caller's fields that take the results."""
    domains: list[Domain | None]
    """What was asked of each output."""
    static: dict[str, Any]
    """The values of the static parameters."""


class EntryPoint(abc.ABC):
    """A decorated function that is recorded, planned and compiled: a field operator, a scan or a program."""

    def __init__(self, function: Callable[..., Any], backend: str | None, options: CompilationOptions) -> None:
        functools.update_wrapper(self, function)
        self.function, self.backend, self.options = function, backend, options
        self._bound: dict[str, Any] = {}
        self._renew()

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function."""

    def _renew(self) -> None:
        """Begins without anything recorded or compiled."""
        self._execution = Execution(self.backend)
        self._variants = Variants()
        self._static = self.options.static_params or ()
        if self._static:
            self._parameters.check_names(self._static)

    def _changed(self, **changes: Any) -> Self:
        new = copy.copy(self)
        vars(new).update(changes)
        new._renew()
        return new

    @property
    def stats(self) -> Stats:
        """How often the function was recorded, planned and traced by JAX."""
        return self._execution.stats

    @property
    def _parameters(self) -> Parameters:
        """The parameters of a call, without those that are bound."""
        return Parameters(getattr(self, "__name__", "the function"), self._signature(), self._bound)

    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def with_backend(self, backend: str | None) -> Self:
        """The same on another backend, with nothing compiled yet: None (embedded) or 'jax'."""
        return self._changed(backend=backend)

    def with_grid_type(self, grid_type: Any) -> Self:
        """The same: a grid type, which gt4py.next has, has no effect here."""
        del grid_type
        return self

    def with_compilation_options(self, **options: Any) -> Self:
        """The same with other options, and nothing compiled yet.

        `enable_jit=False`: a call that would have to compile what `compile` didn't is an error.
        `static_params=("n",)`: scalar parameters that the program depends on by value; a new value compiles.
        `connectivities=mesh`: what `compile` takes where it is given no offset provider.

        Raises ArgumentError for another option, or a static parameter that there isn't.
        """
        return self._changed(options=self.options.changed(**options))

    def with_static_params(self, *names: str | None) -> Self:
        """The same with these static parameters (none, or None: without), and nothing compiled yet."""
        return self.with_compilation_options(static_params=names)

    def with_bound_args(self, **values: Any) -> Self:
        """The same without some parameters: each call gets these values for them.

        Raises ArgumentError for a name that isn't a parameter, or that is bound already; when it is called with
        an argument of that name.

        >>> import fieldjax as fj
        >>> Cell = fj.Dimension("Cell")
        >>> @fj.field_operator
        ... def scaled(f, factor, shift):
        ...     return factor * f + shift
        >>> scaled.with_bound_args(factor=2)(fj.as_field({Cell: 3}, [1, 2, 3]), 1).asnumpy().tolist()
        [3, 5, 7]
        """
        bound = self._parameters.binding(values)
        return self._changed(_bound=bound.bound, __signature__=bound.remaining)

    def compile(self, *args: Any, offset_provider: Any = None, **kwargs: Any) -> Self:
        """Compiles ahead of calls; returns itself.

        Lists are values of static parameters: all their combinations are compiled. If no static parameters were
        declared, each that has a list is static from now on. A list of offset providers: for each of them.

        A compiled program depends on the domains of its fields. With the arguments of a call (`out` and `domain`
        among them, where the call has them) everything is compiled here; only kinds and domains of fields are
        looked at, and a field of a `jax.ShapeDtypeStruct` will do. Conditions on scalars that aren't static are
        decided by the given values. Without arguments, as in gt4py.next, the combinations are admitted for fields
        of any domain, and each set of domains is compiled when it is first met, with `enable_jit=False` too.

        On the embedded backend nothing is compiled.

        Raises:
            ArgumentError: a list for what isn't a parameter; where static parameters were declared, for another, or
                none for one of them; a scalar that is no list, without the other arguments of a call.
            DtypeError: a value isn't what its parameter is annotated.

        >>> import jax, fieldjax as fj
        >>> Cell = fj.Dimension("Cell")
        >>> @fj.field_operator(enable_jit=False)
        ... def power(f, n):
        ...     return f**n
        >>> abstract = fj.as_field({Cell: 3}, jax.ShapeDtypeStruct((3,), "float32"))
        >>> _ = power.compile(abstract, n=[1, 2])
        >>> power.stats.traces
        2
        >>> power(fj.as_field({Cell: 3}, [1, 2, 3], "float32"), 2).asnumpy().tolist()
        [1.0, 4.0, 9.0]
        >>> power.stats.traces
        2
        """
        lists = {n: x for n, x in kwargs.items() if isinstance(x, list)}
        example = {n: x for n, x in kwargs.items() if n not in lists}
        located(lambda: self._declare(lists, is_example=bool(args or example)))
        if not args and example and not _holds_fields(example):
            raise ArgumentError(
                f"compile takes a list of values for each static parameter: {next(iter(example))} is none",
                location=user_location(),
                hints=["or all arguments of a call"],
            )
        for provider, values in itertools.product(self._providers(offset_provider), _combinations(lists)):
            if self.backend is not None:
                located(lambda p=provider, v=values: self._compile(args, {**example, **v}, p))
        return self

    def _declare(self, lists: Mapping[str, list[Any]], is_example: bool) -> None:
        """Checks lists of static values; static from now on are their parameters, where none were declared."""
        parameters = self._parameters
        parameters.check_free(lists)
        parameters.check_names(lists)
        if self.options.static_params is not None:
            self._check_declared(lists, is_example)
        for name, values in lists.items():
            for value in values:
                static_value(name, value)
                check_scalar(self._annotated, name, value)
        self._make_static(tuple(dict.fromkeys((*self._static, *lists))))

    def _check_declared(self, lists: Mapping[str, list[Any]], is_example: bool) -> None:
        if unknown := [n for n in lists if n not in self._static]:
            raise ArgumentError(
                f"{unknown[0]} has a list of values, and isn't a static parameter",
                notes=[f"static are {', '.join(self._static)}"],
                hints=["declare it with `with_static_params`, which starts with nothing compiled"],
            )
        missing = [n for n in self._static if n not in lists and n not in self._bound]
        if missing and not is_example:
            raise ArgumentError(
                f"compile has no values of the static parameter {missing[0]}",
                hints=[f"give a list: {missing[0]}=[...]"],
            )

    def _make_static(self, names: tuple[str, ...]) -> None:
        self._static = names

    @property
    def _annotated(self) -> Callable[..., Any]:
        """The function as the user wrote it."""
        return self.function

    def _providers(self, offset_provider: Any) -> list[Provider]:
        source = self.options.connectivities if offset_provider is None else offset_provider
        return [as_provider(s) for s in (source if isinstance(source, list) else [source])]

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], provider: Provider) -> None:
        if not args and not _holds_fields(kwargs):
            self._variants.add(Variant.of({**self._static_bound(), **kwargs}, provider))
            return
        planned = self._planned(args, kwargs, provider)
        self._execution.compile(planned.recording, planned.plan, planned.inputs, planned.numpy)

    def _static_bound(self) -> dict[str, Any]:
        return {n: x for n, x in self._bound.items() if n in self._static}

    def lower(self, *args: Any, offset_provider: Any = None, **kwargs: Any) -> Lowered:
        """What a call with these arguments becomes: graph, jaxpr and StableHLO. Nothing is run or changed.

        >>> import fieldjax as fj
        >>> Cell = fj.Dimension("Cell")
        >>> @fj.field_operator
        ... def double(f):
        ...     return 2 * f
        >>> lowered = double.lower(fj.as_field({Cell: 3}, [1, 2, 3]))
        >>> "multiply" in lowered.graph, "stablehlo.multiply" in lowered.stablehlo, lowered.jaxpr.consts
        (True, True, [])
        """
        planned = located(lambda: self._planned(args, kwargs, as_provider(offset_provider)))
        traced = self._execution.trace(planned.recording, planned.plan, planned.inputs, planned.numpy)
        return Lowered.of(to_text(planned.recording.graph), traced)

    @abc.abstractmethod
    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any], provider: Provider) -> Planned:
        """A call, recorded and planned; `out` and `domain` of an operator are among `kwargs`."""

    def _completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with those that are bound."""
        return self._parameters.complete(args, kwargs) if self._bound else (args, kwargs)

    def _marked(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """Complete arguments, the static ones marked; and the static values."""
        return self._parameters.static(args, kwargs, self._static) if self._static else (args, kwargs, {})

    def _check_compiled(self, planned: Planned, provider: Provider, enable_jit: bool | None) -> None:
        """Raises NotCompiledError where the call would compile, and mustn't."""
        enabled = self.options.enable_jit if enable_jit is None else enable_jit
        if enabled or self.backend is None or self._execution.is_compiled(planned.recording, planned.plan):
            return
        call = Variant.of(planned.static, provider, planned.recording.names)
        self._variants.check(self._parameters.name, call)


def _combinations(lists: Mapping[str, list[Any]]) -> Iterable[dict[str, Any]]:
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def _holds_fields(x: Any) -> bool:
    leaves: Sequence[Any] = flatten(x)[0]
    return any(isinstance(leaf, Field) or is_table(leaf) for leaf in leaves)
