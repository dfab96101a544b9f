"""What was compiled for a model, as data and as a table."""

from __future__ import annotations

from dataclasses import dataclass

from fieldjax.ir.graph import Graph
from fieldjax.model.executable import Stats, stats_of
from fieldjax.model.region import Region


@dataclass(frozen=True)
class Row:
    """One body: the regions of the model that run it, and what was done for it in this process."""

    name: str
    regions: int
    operations: int
    """Operations in the body."""
    stats: Stats


@dataclass(frozen=True)
class Report:
    """The bodies of a model's regions, and how much of the model they are.

    `str(report)` is a table.
    """

    rows: tuple[Row, ...]
    outside: int
    """Operations that are in no region."""

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return sum(row.regions for row in self.rows)

    @property
    def compiled(self) -> int:
        """How many functions were compiled for them."""
        return sum(row.stats.compiled for row in self.rows)

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows], default=6)
        lines = [f"{'region':{width}}  regions  operations  compiled  traces  calls  seconds"]
        lines += [
            f"{row.name:{width}}  {row.regions:7}  {row.operations:10}  {row.stats.compiled:8}  "
            f"{row.stats.traces:6}  {row.stats.calls:5}  {row.stats.seconds:7.2f}"
            for row in self.rows
        ]
        return "\n".join([*lines, f"{self.outside} operations are in no region"])


def report(graph: Graph) -> Report:
    """The report of a graph."""
    bodies: dict[Graph, list[Region]] = {}
    outside = 0
    for node in graph.nodes:
        if isinstance(node.operation, Region):
            bodies.setdefault(node.operation.body, []).append(node.operation)
        elif node.inputs:
            outside += 1
    rows = [
        Row(regions[0].name, len(regions), sum(1 for n in body.nodes if n.inputs), stats_of(body))
        for body, regions in bodies.items()
    ]
    return Report(tuple(rows), outside)
