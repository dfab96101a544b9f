"""What a caller asks of a region, checked: options that can't be honoured are errors, before anything is changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax

from fieldjax.errors import ArgumentError, user_location
from fieldjax.ir.graph import Graph, Node
from fieldjax.model.region import MODES, Options, Region

INTERMEDIATES = ("none", "used", "all")
JIT_KWARGS = ("compiler_options", "inline", "keep_unused")
"""What `jax.jit` takes that doesn't depend on the order of a region's inputs, and leaves these to others."""


def options_of(mode: str, device: Any, jit_kwargs: Any, separately: bool, fusion: bool | None) -> Options:
    """The options of a region. Raises ArgumentError for unknown ones, and for those that the mode can't honour."""
    check_one_of("mode", mode, MODES)
    check_one_of("fusion", fusion, (None, True, False))
    if not separately:
        if mode not in ("auto", "inline"):
            raise ArgumentError(
                f"`compile_separately=False` means `mode='inline'`, not {mode!r}", location=user_location()
            )
        mode = "inline"
    options = Options(mode, device_name(device), fusion, _jit_kwargs(jit_kwargs))
    asked = {"device": options.device, "jit_kwargs": options.jit_kwargs or None, "fusion": fusion}
    for what, value in asked.items():
        if value is not None and mode in ("inline", "call", "scan") and not (mode == "scan" and what != "device"):
            raise ArgumentError(
                f"`mode={mode!r}` can't honour `{what}`",
                location=user_location(),
                hints=["leave it away, or take `mode='segment'`"],
            )
    options.placed  # noqa: B018  # raises where there is no such device
    return options


def check_one_of(what: str, value: Any, known: Sequence[Any]) -> None:
    """Raises ArgumentError for an option that isn't one of those that are known."""
    if not any(value is k or (isinstance(k, str) and value == k) for k in known):
        raise ArgumentError(
            f"`{what}` is one of {', '.join(map(repr, known))}, not {value!r}", location=user_location()
        )


def device_name(device: Any) -> str | None:
    """A JAX device by name; a name as it is. Raises ArgumentError for anything else."""
    if device is None or isinstance(device, str):
        return device
    if not isinstance(device, jax.Device):
        raise ArgumentError(
            f"`device` is a name like 'cpu:1' or a device of JAX, not {device!r}", location=user_location()
        )
    return f"{device.platform}:{device.id}"


def _jit_kwargs(given: Any) -> tuple[tuple[str, Any], ...]:
    """Options for `jax.jit` as something to compare by; dicts as their items."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ArgumentError(f"`jit_kwargs` is a dict, not {given!r}", location=user_location())
    for name in given:
        if name not in JIT_KWARGS:
            raise ArgumentError(
                f"`jit_kwargs` takes {', '.join(JIT_KWARGS)}, not {name!r}",
                location=user_location(),
                notes=["a region's function takes its inputs in an order of its own, and others may read them too"],
            )
    kwargs = {n: tuple(sorted(x.items())) if isinstance(x, Mapping) else x for n, x in given.items()}
    found = tuple(sorted(kwargs.items()))
    try:
        _check_compiles(found)
    except Exception as error:
        raise ArgumentError(f"JAX doesn't take `jit_kwargs={given!r}`: {error}", location=user_location()) from error
    return found


@lru_cache(maxsize=64)
def _check_compiles(jit_kwargs: tuple[tuple[str, Any], ...]) -> None:
    if jit_kwargs:
        Options(jit_kwargs=jit_kwargs).compiled(lambda: 0).lower().compile()


def check_nested(nodes: Iterable[Node], options: Options) -> None:
    """Raises ArgumentError where a region on these nodes would have one inside whose options it can't honour."""
    for region in regions_in(nodes):
        inner = region.options
        calls_host = inner.device is not None or inner.mode == "callback"
        lost = {
            "fusion": inner.fusion is False and options.fusion is not False,
            "jit_kwargs": inner.jit_kwargs not in ((), options.jit_kwargs),
            "device": calls_host and (options.device is not None or options.mode == "callback"),
        }
        for what in (what for what, is_lost in lost.items() if is_lost):
            raise ArgumentError(
                f"{region} is inside of the region, where its `{what}` can't be honoured",
                location=user_location(),
                notes=["what is inside of a region is part of its compiled function"],
                hints=[f"give `{what}` to the outer region instead"],
            )


def check_in_loop(options: Options) -> None:
    """Raises ArgumentError for options that a region in the body of a loop can't honour."""
    for what, is_asked in (("fusion", options.fusion is False), ("jit_kwargs", bool(options.jit_kwargs))):
        if is_asked:
            raise ArgumentError(
                f"a region inside of a loop can't honour `{what}`",
                location=user_location(),
                notes=["it is part of the loop's compiled function"],
                hints=["compress the loop, with this option"],
            )


def regions_in(nodes: Iterable[Node]) -> Iterator[Region]:
    """The regions among these nodes, and inside of them."""
    for node in nodes:
        if isinstance(node.operation, Region):
            yield node.operation
        for field in dataclasses.fields(node.operation):  # type: ignore[arg-type]
            inner = getattr(node.operation, field.name)
            if isinstance(inner, Graph):
                yield from regions_in(inner.nodes)
