"""`compress`: turns what lies between values of a recorded model into one separately compiled operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fieldjax.compress.boundary import Uses, between, bounded, check_pure, depends, with_feeders
from fieldjax.compress.difference import first_difference
from fieldjax.compress.options import INTERMEDIATES, check_in_loop, check_nested, check_one_of, options_of
from fieldjax.compress.repeats import Finder
from fieldjax.domain import Domain
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.joined_loops import join_loops
from fieldjax.ir.operation import Place
from fieldjax.model.executable import Stats, stats_of
from fieldjax.model.growing import Boundary, Replacement
from fieldjax.model.interning import aligned, interned, states_identity
from fieldjax.model.isolation import isolated
from fieldjax.model.recorder import Recording
from fieldjax.model.region import Options, Region
from fieldjax.model.variable import Variable


@dataclass(eq=False)
class CompressedOperation:
    """A region of a recorded model. `repeats` are the copies that `find_repeats` compressed with it."""

    name: str
    inputs: tuple[Variable | Any, ...]
    """What was given as inputs, then what else the region reads."""
    outputs: tuple[Variable, ...]
    options: Options
    body: Graph
    """The graph that it runs: the same object for all regions that share what is compiled."""
    places: tuple[Place, ...]
    """Where the inputs live."""
    repeats: tuple[CompressedOperation, ...] = ()

    @property
    def stats(self) -> Stats:
        """How often the body was compiled and traced, by all regions that share it."""
        return stats_of(self.body)

    def __repr__(self) -> str:
        return f"CompressedOperation({self.name}: {len(self.inputs)} inputs, {len(self.outputs)} outputs)"


def compress(
    inputs: Any,
    outputs: Any,
    *,
    name: str | None = None,
    absorb_feeders: bool = False,
    intermediates: str = "none",
    device: Any = None,
    jit_kwargs: Mapping[str, Any] | None = None,
    compile_separately: bool = True,
    mode: str = "auto",
    fusion: bool | None = None,
    share_compiled: bool = True,
    find_repeats: bool = False,
    share_with: CompressedOperation | None = None,
    assume_custom_ops_match: bool = False,
) -> CompressedOperation:
    """Makes one operation of all that lies between `inputs` and `outputs`, compiled on its own.

    The outputs stay the values that they are: whoever read them reads them still. What else the region reads
    becomes an input too. Regions that do the same share one compiled function, in this model and in others.

    Args:
        inputs: a variable, or a list of variables and connectivities.
        outputs: a variable, or a list of variables.
        name: what messages and reports call it.
        absorb_feeders: also takes the operations before it whose results only it uses.
        intermediates: what to do with values inside that others use: 'none' raises, 'used' makes those outputs,
            'all' makes outputs of all that is computed.
        device: where it runs, "cpu:1" or a JAX device; its derivatives too.
        jit_kwargs: options for `jax.jit`: 'compiler_options', 'inline', 'keep_unused'.
        compile_separately: False is `mode="inline"`.
        mode: how it is executed: one of 'auto', 'segment', 'scan', 'call', 'callback', 'inline'.
        fusion: False compiles it without XLA's fusion, which costs speed on large fields and saves compiling.
        share_compiled: False compiles it for itself.
        find_repeats: also compresses every other copy in the model.
        share_with: asserts that it does the same as another region.
        assume_custom_ops_match: custom operations of the same name are taken to do the same.

    Raises ArgumentError, the model exactly as it was: inputs or outputs given twice, an input that is an output, no
    path between them, an input that depends on the inside, inner values used elsewhere, an unknown option, one that
    can't be honoured in that mode, in a loop, or by the new region for one inside of it, a device that isn't there, a
    region that differs from `share_with`; UnsupportedError for operations that aren't functions of their inputs.

    >>> import fieldjax as fj
    >>> with fj.record() as model:
    ...     x = model.input("x", 0.5)
    ...     h = x
    ...     for _ in range(4):
    ...         before, h = h, fj.sin(h) + 0.1
    ...     op = fj.compress(before, h, find_repeats=True)
    ...     model.output("h", h)
    >>> len(op.repeats)
    3
    >>> round(float(model.run()["h"]), 3), op.stats.compiled
    (0.747, 1)
    """
    options = options_of(mode, device, jit_kwargs, compile_separately, fusion)
    check_one_of("intermediates", intermediates, INTERMEDIATES)
    if not (share_with is None or isinstance(share_with, CompressedOperation)):
        raise ArgumentError(f"`share_with` is a region, not {share_with!r}", location=user_location())
    recording, boundary = _region(inputs, outputs, intermediates, absorb_feeders, find_repeats)
    check_nested(boundary.nodes, options)
    if recording.depth:
        check_in_loop(options)
    body, order = _body(recording, boundary, share_compiled, share_with, assume_custom_ops_match)
    name = name or f"region{len(recording.regions)}"
    found = [boundary]
    if find_repeats and (assume_custom_ops_match or states_identity(body)):
        found += Finder(recording, boundary, assume_custom_ops_match).copies()
    made = Region(body, (None,) * len(body.outputs), name, options=options)
    placed = [Replacement(b.nodes, tuple(b.inputs[n] for n in order), b.outputs, made) for b in found]
    recording.replace(placed)
    operations = [_operation(recording, replacement, made) for replacement in placed]
    operations[0].repeats = tuple(operations[1:])
    recording.regions.extend(operations)
    return operations[0]


def _region(
    inputs: Any, outputs: Any, intermediates: str, absorb_feeders: bool, find_repeats: bool
) -> tuple[Recording, Boundary]:
    """The recording and the region in it: in the graph as it was before the last regions, where that is enough."""
    recording, given, wanted = _ends(inputs, outputs)
    if recording.pending and not find_repeats:
        try:
            boundary = _bounded(recording, given, wanted, intermediates, absorb_feeders)
        except FieldjaxError:
            boundary = None
        if boundary is not None and _is_apart(recording, boundary, given):
            return recording, boundary
    recording.settle()
    _, given, wanted = _ends(inputs, outputs)
    return recording, _bounded(recording, given, wanted, intermediates, absorb_feeders)


def _bounded(
    recording: Recording, inputs: list[Value], outputs: list[Value], intermediates: str, absorb_feeders: bool
) -> Boundary:
    uses = Uses(recording)
    inside = between(recording, inputs, outputs)
    if absorb_feeders:
        inside = with_feeders(recording, inside, inputs, uses)
    check_pure(inside)
    return bounded(recording, inside, inputs, outputs, intermediates, uses)


def _is_apart(recording: Recording, boundary: Boundary, given: list[Value]) -> bool:
    """Whether those regions that are pending change nothing: they share no node, and lie on no path inside."""
    inside, pending, number = set(boundary.nodes), recording.pending, recording.number
    start = inside | {v.node for v in given}
    extra = boundary.inputs[len(given) :]
    return (
        inside.isdisjoint(pending)
        and not depends(given, inside, number, pending)
        and not depends(extra, start, number, pending)
    )


def _operation(recording: Recording, replacement: Replacement, made: Region) -> CompressedOperation:
    inputs = tuple(v if v.is_table else recording.variable_of(v) for v in replacement.inputs)
    outputs = tuple(recording.variable_of(v) for v in replacement.outputs)
    places = tuple(recording.places[v] for v in replacement.inputs)
    return CompressedOperation(made.name, inputs, outputs, made.options, made.body, places)


class Ends(NamedTuple):
    """Where a region is to begin and to end."""

    recording: Recording
    inputs: list[Value]
    outputs: list[Value]


def _ends(inputs: Any, outputs: Any) -> Ends:
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    variables = [x for x in (*wanted, *given) if isinstance(x, Variable)]
    if not wanted or not given or not all(isinstance(x, Variable) for x in wanted) or len(variables) < 2:
        raise ArgumentError("a region lies between values of a recorded model", location=user_location())
    recording = variables[0].recorder
    values = [_known(recording, x) for x in given], [_known(recording, x) for x in wanted]
    for what, ends in zip(("input", "output"), values, strict=True):
        twice = [v for v in ends if ends.count(v) > 1]
        if twice:
            raise ArgumentError(f"an {what} is given twice: {_shown(recording, twice[0])}", location=user_location())
    both = [v for v in values[0] if v in values[1]]
    if both:
        raise ArgumentError(f"{_shown(recording, both[0])} is an input and an output", location=user_location())
    return Ends(recording, *values)


def _known(recording: Recording, x: Any) -> Value:
    """A value of the graph. Raises TracingError for one of another model, ArgumentError for one that isn't there."""
    value = recording.unsettled(x) if isinstance(x, Variable) else recording.known_value(x)
    if value is None or value.node not in recording.number:
        raise ArgumentError(f"{x!r} isn't a value of the model", location=user_location())
    return value


def _shown(recording: Recording, value: Value) -> str:
    return repr(recording.name_of(value) or str(value.node.operation))


def _body(
    recording: Recording,
    boundary: Boundary,
    share: bool,
    share_with: CompressedOperation | None,
    assume_match: bool,
) -> tuple[Graph, list[int]]:
    """The body of a region, shared or not, and the order of the region's inputs in it."""
    graph = join_loops(isolated(boundary.inputs, boundary.outputs))
    if share_with is not None:
        return share_with.body, _as_in(recording, boundary, graph, share_with)
    if not share:
        return graph, list(range(len(graph.inputs)))
    places = [recording.places[v] for v in boundary.inputs]
    domains = [p if isinstance(p, Domain) else None for p in places]
    return interned(graph, domains, [None] * len(graph.outputs), assume_match)


def _as_in(recording: Recording, boundary: Boundary, graph: Graph, other: CompressedOperation) -> list[int]:
    """The order of the inputs in the other region's body. Raises ArgumentError where they differ."""
    order = aligned(graph, other.body)
    note = first_difference(other.body, graph) if order is None else None
    for n, place in zip(order or (), other.places, strict=False):
        if isinstance(place, Domain) and place != recording.domain(boundary.inputs[n]):
            note = f"an input lives on {place} there, on {recording.domain(boundary.inputs[n])} here"
    if order is None or note is not None:
        raise ArgumentError(f"the region isn't the same as {other.name}", location=user_location(), notes=[str(note)])
    return order
