"""`compressed`: an operator, program or function each of whose calls is a region."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental.xla_metadata import set_xla_metadata

from fieldjax.backend.host_call import checked, host_call
from fieldjax.compress.compress import compress
from fieldjax.compress.options import check_one_of, device_name
from fieldjax.connectivity import Mesh, is_table
from fieldjax.embedded.field import Field
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.containers import flatten, unflatten
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.model.region import MODES, Options
from fieldjax.model.variable import Variable, variables


class Compressed:
    """A callable whose calls are regions. Made by `compressed`."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        _check_names(options)
        functools.update_wrapper(self, function)
        self.function, self.options = function, options
        self._apart = jax.jit(self._traced, static_argnums=(0, 1))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the function: recorded as a region, called apart under a trace, or as it is on data."""
        leaves, tree = flatten((args, kwargs))
        if any(isinstance(x, Variable) for x in leaves):
            return self._recorded(args, kwargs)
        if not any(isinstance(_array(x), Tracer) for x in jax.tree.leaves(leaves)):
            return self.function(*args, **kwargs)
        moving = [x if _is_data(x) else None for x in leaves]
        fixed = tuple(None if _is_data(x) else _Fixed(x) for x in leaves)
        mode, device = self._in_a_trace(), self.options.get("device")
        if mode == "inline":
            return self.function(*args, **kwargs)
        if mode == "callback" or device is not None:
            return self._by_host(tree, fixed, moving, Options(mode, device_name(device)).placed)
        with set_xla_metadata(inlineable="false"):
            return self._apart(tree, fixed, moving)

    def _in_a_trace(self) -> str:
        """How a call runs under a trace of JAX. Raises ArgumentError for options that can't be honoured there."""
        for what in ("fusion", "jit_kwargs"):
            if self.options.get(what) not in (None, {}):
                raise ArgumentError(
                    f"a call under a trace of JAX can't honour `{what}`",
                    location=user_location(),
                    notes=["it is part of the program that is traced"],
                    hints=["leave it away, or record a model"],
                )
        return self.options.get("mode", "auto") if self.options.get("compile_separately", True) else "inline"

    def _by_host(self, tree: Any, fixed: tuple[Any, ...], moving: list[Any], device: Any) -> Any:
        arrays, structure = jax.tree.flatten(moving)
        function, result = self._flat(tree, fixed, structure)
        found = host_call(function, tuple(arrays), None if device is None else checked(device))
        return jax.tree.unflatten(result[0], found)

    @functools.lru_cache(maxsize=256)  # noqa: B019  # as long as the compressed function
    def _flat(self, tree: Any, fixed: tuple[Any, ...], structure: Any) -> tuple[Any, list[Any]]:
        """The function on flat arrays, and where it leaves the structure of its result."""
        result: list[Any] = []

        def flat(*arrays: Any) -> tuple[Any, ...]:
            leaves, found = jax.tree.flatten(self._traced(tree, fixed, jax.tree.unflatten(structure, arrays)))
            result[:] = [found]
            return tuple(leaves)

        return flat, result

    def _traced(self, tree: Any, fixed: tuple[Any, ...], moving: list[Any]) -> Any:
        args, kwargs = unflatten(tree, [m if f is None else f.value for f, m in zip(fixed, moving, strict=True)])
        return self.function(*args, **kwargs)

    def _recorded(self, args: Any, kwargs: Any) -> Any:
        given = list(dict.fromkeys(variables((args, kwargs))))
        recording: Any = recorder_of(given)
        before = {v: recording.value(v) for v in given}
        result = self.function(*args, **kwargs)
        # A program returns nothing: its results are the variables that it assigned to.
        results = variables(result) if result is not None else [v for v in given if recording.value(v) != before[v]]
        if not results:
            raise ArgumentError(f"{self.__name__} gives no recorded value", location=user_location())  # type: ignore[attr-defined]
        starts = [recording.variable_of(value) for value in before.values()]
        compress(starts, list(dict.fromkeys(results)), name=self.__name__, **self.options)  # type: ignore[attr-defined]
        return result


def _check_names(options: dict[str, Any]) -> None:
    """Raises ArgumentError for an option that `compress` doesn't have, or a mode that isn't one."""
    known = [p.name for p in inspect.signature(compress).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known.remove("name")
    for name in options:
        if name not in known:
            raise ArgumentError(
                f"`compressed` has no option {name!r}",
                location=user_location(),
                notes=[f"there are {', '.join(known)}"],
            )
    check_one_of("mode", options.get("mode", "auto"), MODES)


class _Fixed:
    """An argument that isn't data: compared by equality and type."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fixed) and type(other.value) is type(self.value) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def _is_data(x: Any) -> bool:
    return isinstance(x, (Field, Mesh, jax.Array, np.ndarray)) or is_table(x)


def _array(x: Any) -> Any:
    return getattr(x, "ndarray", x)


def compressed(function: Any = None, /, **options: Any) -> Any:
    """Makes every call of an operator, a program or a function of them a region; all calls of one kind share it.

    In a recorded model a call is compressed, with `options` as `compress` has them. Under a trace of JAX it is a call
    that XLA may not inline, so that its work isn't repeated elsewhere, and can be differentiated in any way; `mode` may
    be 'callback' or 'inline' there, and with `device` it is a host call. On data it is the function itself.

    Raises ArgumentError for an unknown option, and under a trace for `fusion` and `jit_kwargs`, which a part of another
    program can't honour.

    >>> import fieldjax as fj
    >>> Cell = fj.Dimension("Cell")
    >>> @fj.compressed
    ... @fj.field_operator
    ... def square(f):
    ...     return f * f
    >>> with fj.record() as model:
    ...     f = model.input("f", fj.as_field({Cell: 2}, [1.0, 2.0]))
    ...     model.output("g", square(square(f)))
    >>> [(op.name, op.stats.compiled) for op in model.compressed_operations if model.run()]
    [('square', 1), ('square', 1)]
    """
    if function is None:
        return lambda f: Compressed(f, options)
    return Compressed(function, options)
