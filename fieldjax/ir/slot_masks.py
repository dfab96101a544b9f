"""Single slots of sparse fields under the mask of what they meet: `f(E2C[1]) * sparse[E2CDim(1)]`."""

from __future__ import annotations

from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.operation import record


def at_substitutes(value: Value, mask: Mask) -> Value:
    """The value with sparse fields read at the substitutes of the table, where it read them at the mask's slot.

    It looks through pointwise work only. What it doesn't change stays the same node.
    """
    return _Substitution(mask).of(value)


class _Substitution:
    """One pass over an expression, each node once."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._known: dict[Node, tuple[Value, ...]] = {}

    def of(self, value: Value) -> Value:
        if self._mask in value.masks:
            return value
        node = value.node
        if node not in self._known:
            self._known[node] = self._results(node)
        return self._known[node][value.port]

    def _results(self, node: Node) -> tuple[Value, ...]:
        from fieldjax.ir.operations.layout import Broadcast
        from fieldjax.ir.operations.pointwise import Cast, Pointwise
        from fieldjax.ir.operations.slots import AtSlot, Substitute

        mask, operation = self._mask, node.operation
        if isinstance(operation, AtSlot) and (operation.local, operation.position) == (mask.local, mask.slot):
            (sparse,) = node.inputs
            masked = sparse.mask_over(operation.local) is not None or not self._has_rows(sparse)
            inputs = node.inputs if masked else record(Substitute(operation.local), sparse, mask.table)
        elif isinstance(operation, (Broadcast, Cast, Pointwise)):
            inputs = tuple(map(self.of, node.inputs))
        else:
            inputs = node.inputs
        same = all(x == y for x, y in zip(inputs, node.inputs, strict=True))
        return node.results() if same else record(operation, *inputs, location=node.location)

    def _has_rows(self, sparse: Value) -> bool:
        """A field that lacks the table's rows has no substitutes of its own."""
        return set(self._mask.table.dims) <= set(sparse.dims)
