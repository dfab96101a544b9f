"""Domain inference: what is available going forward, what is needed going back.

Host arithmetic only. Forward, each value gets the domain on which it could be computed; an impossible
narrowing poisons its value and is raised only if somebody wants it. Backward, each value gets the boxes that
its readers want; their hull is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fieldjax.connectivity import TableQuestions
from fieldjax.domain import Dimension, Domain, DomainUnion, UnitRange
from fieldjax.errors import DomainError, NarrowingError, UnsupportedError
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import Demand, Place, Roots, table_of
from fieldjax.ir.operations.gather import Gather
from fieldjax.ir.operations.reduction import Reduce
from fieldjax.ir.plan import Plan, PlanKey, TablePlan

MOST_BOXES = 8
"""More separate demands on one value than this are joined into their hull."""


def infer(
    graph: Graph,
    places: Sequence[Place],
    wanted: Sequence[Domain | None],
    adjoints: Sequence[tuple[int, int] | None] = (),
) -> Plan:
    """The plan of `graph` for inputs on `places` and outputs on `wanted` (None: all that is available).

    `adjoints`: for each table its transpose's shape, where that will be attached; left out, none is.

    Raises NarrowingError where a needed premap has no rectangular result, and DomainError naming the missing
    indices where an input doesn't hold what an output needs.
    """
    known: dict[Value, Place] = dict(zip(graph.inputs, places, strict=True))
    _check_masks(graph, known)
    available, poisoned = _forward(graph, known)
    targets = [_output_domain(*asked, available, poisoned) for asked in zip(graph.outputs, wanted, strict=True)]
    demands = _backward(graph, available, targets, [domain is not None for domain in wanted])
    domains = {v: _hull(boxes) for v, boxes in demands.items()}
    domains.update((v, p) for v, p in known.items() if isinstance(p, Domain))
    nested = _nested(graph, available, domains, adjoints)
    return _plan(graph, known, domains, targets, adjoints, nested, clip=any(len(b) > 1 for b in demands.values()))


def _check_masks(graph: Graph, known: Mapping[Value, Place]) -> None:
    for node, mask in graph.moved_masks:
        table = table_of(known[mask.table])
        if table.facts(table.domain).has_skips:
            name = getattr(mask.local, "value", "")
            raise UnsupportedError(
                f"missing neighbours along {name} can't follow {node.operation} to other rows",
                location=node.location,
                notes=[f"the table of {name} has skips; which ones is known for its own rows only"],
                hints=["reduce first and read the result elsewhere, or choose one slot"],
            )


def _forward(graph: Graph, known: Mapping[Value, Place]) -> tuple[dict[Value, Place], dict[Value, NarrowingError]]:
    """Where each value is available (or a domain that bounds it), and why some are not available as a whole."""
    available, poisoned = dict(known), {}
    for node in graph.nodes:
        if node in graph.given:
            continue
        results = node.results()
        places = [available[v] for v in node.inputs]
        poison = next((poisoned[v] for v in node.inputs if v in poisoned), None)
        try:
            found = node.operation.available(node, places)
        except NarrowingError as raised:
            poison = poison or (raised if node.location is None else raised.with_location(node.location))
            found = node.operation.bounds(node, places)
        available.update(zip(results, found, strict=True))
        if poison is not None:
            poisoned.update((v, poison) for v in results)
    return available, poisoned


def _backward(
    graph: Graph, available: Mapping[Value, Place], targets: Sequence[Domain], asked: Sequence[bool]
) -> dict[Value, list[Domain]]:
    demands: dict[Value, list[Domain]] = {}
    roots: dict[Value, dict[Dimension, UnitRange]] = {}
    for value, target, is_asked in zip(graph.outputs, targets, asked, strict=True):
        add_box(demands, value, target)
        if is_asked:
            _widen(roots, value, dict(zip(target.dims, target.ranges, strict=True)))
    for node in reversed(graph.nodes):
        if node in graph.given:
            for value in node.results():
                _check_input(value, demands.get(value, ()), available)
        else:
            _ask_inputs(node, demands, roots, [available[v] for v in node.inputs])
    return demands


def _ask_inputs(
    node: Node,
    demands: dict[Value, list[Domain]],
    roots: dict[Value, dict[Dimension, UnitRange]],
    places: Sequence[Place],
) -> None:
    """Adds what a node needs of its inputs to their demands."""
    wide: dict[Value, dict[Dimension, UnitRange]] = {}
    for value in node.results():
        _widen(wide, node.results()[0], roots.get(value, {}))
    own = wide[node.results()[0]]
    for wanted in _requests(node, demands):
        settled = node.operation.settle(node, wanted, places, own)
        for value, before, box in zip(node.results(), wanted, settled, strict=True):
            if box is not None and box != before:
                demands[value] = [box]
        for value, asked in zip(node.inputs, node.operation.demand(node, settled, places), strict=True):
            for box in boxes_of(asked):
                add_box(demands, value, box)
    if any(v in demands for v in node.results()):
        for value, extent in zip(node.inputs, node.operation.roots_of_inputs(node, own), strict=True):
            _widen(roots, value, extent)


def boxes_of(asked: Demand) -> tuple[Domain, ...]:
    """The boxes of a demand."""
    if asked is None:
        return ()
    return tuple(asked) if isinstance(asked, DomainUnion) else (asked,)


def _widen(roots: dict[Value, dict[Dimension, UnitRange]], value: Value, extent: Roots) -> None:
    known = roots.setdefault(value, {})
    for dim, span in extent.items():
        known[dim] = known[dim].hull(span) if dim in known else span


def _requests(node: Node, demands: Mapping[Value, list[Domain]]) -> list[list[Domain | None]]:
    """One list per box for a node with one result; the hulls at once for a node with several."""
    results = node.results()
    if len(results) == 1:
        return [[box] for box in demands.get(results[0], ())]
    hulls = [_hull(demands[v]) if v in demands else None for v in results]
    return [hulls] if any(h is not None for h in hulls) else []


def _output_domain(
    value: Value,
    asked: Domain | None,
    available: Mapping[Value, Place],
    poisoned: Mapping[Value, NarrowingError],
) -> Domain:
    if asked is not None:
        return asked
    if value in poisoned:
        raise poisoned[value]
    domain = available[value]
    assert isinstance(domain, Domain)
    if not domain.is_finite():
        raise DomainError(
            f"the result extends without end: {domain}",
            location=value.node.location,
            hints=["say what you want of it: `domain={...}` or `out=`"],
        )
    return domain


def _check_input(value: Value, boxes: Sequence[Domain], available: Mapping[Value, Place]) -> None:
    held = available.get(value)
    if not isinstance(held, Domain):
        return
    for box in boxes:
        if not box.is_empty() and not held.contains(box):
            raise DomainError(
                f"{value.node.operation} doesn't hold all that is needed of it",
                location=value.node.location,
                notes=[f"it lives on {held}", f"needed is    {box}", *_missing(held, box)],
                hints=["ask for less with `domain=`, or pass a field that reaches further"],
            )


def _missing(held: Domain, box: Domain) -> list[str]:
    notes = []
    for dim in box.dims:
        have, need = held.range_of(dim), box.range_of(dim)
        below = f"[{need.start}, {min(have.start, need.stop)})" if need.start < have.start else ""
        above = f"[{max(have.stop, need.start)}, {need.stop})" if need.stop > have.stop else ""
        if below or above:
            notes.append(f"missing along {dim.value}: {' and '.join(filter(None, (below, above)))}")
    return notes


def add_box(demands: dict[Value, list[Domain]], value: Value, box: Domain) -> None:
    """Adds a demand, joining boxes whose union is a box, and all of them where they are too many."""
    boxes = demands.setdefault(value, [])
    for other in list(boxes):
        if other.contains(box):
            return
        if box.contains(other):
            boxes.remove(other)
        elif (joined := _union_if_box(box, other)) is not None:
            boxes.remove(other)
            return add_box(demands, value, joined)
    boxes.append(box)
    if len(boxes) > MOST_BOXES:
        boxes[:] = [_hull(boxes)]


def _union_if_box(a: Domain, b: Domain) -> Domain | None:
    if a.is_empty():
        return b
    if b.is_empty():
        return a
    apart = [d for d in a.dims if a.range_of(d) != b.range_of(d)]
    if len(apart) != 1:
        return None
    r, s = a.range_of(apart[0]), b.range_of(apart[0])
    return a.hull(b) if max(r.start, s.start) <= min(r.stop, s.stop) else None


def _hull(boxes: Sequence[Domain]) -> Domain:
    hull = boxes[0]
    for box in boxes[1:]:
        hull = hull.hull(box)
    return hull


def _plan(
    graph: Graph,
    known: Mapping[Value, Place],
    domains: Mapping[Value, Domain | None],
    targets: Sequence[Domain],
    adjoints: Sequence[tuple[int, int] | None],
    nested: Mapping[Node, tuple[Plan, ...]],
    clip: bool,
) -> Plan:
    in_order = tuple(domains.get(v) for node in graph.nodes for v in node.results())
    inputs = tuple(domains.get(v) for v in graph.inputs)
    asked = [(v, place) for v, place in known.items() if not isinstance(place, Domain)]
    shapes = adjoints or [None] * len(asked)
    tables = {v: _table_plan(q, shape) for (v, q), shape in zip(asked, shapes, strict=True)}
    inner = tuple(plan.key for plans in nested.values() for plan in plans)
    key = PlanKey((*inputs, *in_order), tuple(targets), tuple(tables.values()), clip, inner)
    return Plan(key, domains, tables, _held(graph, domains), nested)


def _nested(
    graph: Graph,
    available: Mapping[Value, Place],
    domains: Mapping[Value, Domain | None],
    adjoints: Sequence[tuple[int, int] | None],
) -> dict[Node, tuple[Plan, ...]]:
    """The plans of the graphs inside of the operations that are computed."""
    tables = [v for v in graph.inputs if v.is_table]
    shapes = dict(zip(tables, adjoints, strict=True)) if adjoints else {}
    found = {}
    for node in graph.nodes:
        if node not in graph.given and any(v in domains for v in node.results()):
            plans = node.operation.nested(node, [available[v] for v in node.inputs], shapes)
            if plans:
                found[node] = plans
    return found


def _table_plan(questions: TableQuestions, adjoint: tuple[int, int] | None) -> TablePlan:
    facts = questions.facts(questions.domain)
    return TablePlan(questions.domain, questions.skip_value, facts, adjoint)


def _held(graph: Graph, domains: Mapping[Value, Domain | None]) -> frozenset[Value]:
    """What gathers read, where that was itself gathered or reduced.

    XLA:CPU would recompute it for every neighbour that reads it (design.md, "Lowering").
    """
    costly: set[Value] = set()
    held: set[Value] = set()
    for node in graph.nodes:
        operation, inputs = node.operation, set(node.inputs)
        if isinstance(operation, Gather) and node.inputs[0] in costly and not node.inputs[0].field_type.local_dims:
            held.add(node.inputs[0])
        if isinstance(operation, (Gather, Reduce)) or inputs & (costly - held):
            costly.update(node.results())
    return frozenset(v for v in held if domains.get(v) is not None)
