"""`Grid`: what a mesh file gives and what follows from it: tables, geometry, sizes, the operators' `Mesh`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldjax.connectivity import Connectivity, Mesh, as_connectivity
from fieldjax.domain import Dimension
from fieldjax.errors import ArgumentError, ConnectivityError
from fieldjax.mesh.derive import DERIVATIONS
from fieldjax.mesh.names import DIMENSIONS, LOCAL, Cell, Edge, Vertex, endpoints
from fieldjax.mesh.tables import SKIP, check_table, index_dtype

if TYPE_CHECKING:
    import xarray

    from fieldjax.embedded import Field

CORE = ("C2E", "C2V", "E2C", "E2V", "V2C", "V2E")


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """A mesh of polygons with its neighbour tables and geometry, all on the host and read-only.

    Args:
        tables: by offset name, each (rows, slots) of integers counted from 0, -1 where there is no neighbour.
            C2E, C2V, E2C, E2V, V2C and V2E must be there. Others that are given (their order may matter to
            data that came with them) are taken as they are, the rest is derived when first asked for.
        geometry: variables over "Cell", "Edge", "Vertex" and local dimensions, named as in ICON's files
            (`clat`, `cell_area`, …) where ICON has a name, with a `units` attribute; the dataset's attributes
            are those of the file.
        source: where the grid came from, for errors and `repr`.

    Raises:
        ConnectivityError: a table is missing, has the wrong shape or leads outside the mesh.

    >>> from fieldjax.mesh import icosahedron
    >>> grid = icosahedron()
    >>> grid
    Grid: icosahedron
      20 cells, 30 edges, 12 vertices
      tables C2V E2V C2E E2C V2C V2E, derived on demand C2E2C C2E2CO ...
      geometry vlon vlat ...
    >>> grid["clat"].shape, grid.table("E2C2V").shape
    ((20,), (30, 4))
    """

    tables: Mapping[str, np.ndarray]
    geometry: xarray.Dataset
    source: str = ""
    _derived: dict[str, np.ndarray] = field(default_factory=dict, init=False)
    _connectivities: dict[str, Connectivity] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        missing = [name for name in CORE if name not in self.tables]
        if missing:
            raise ConnectivityError(f"a grid needs the tables {', '.join(missing)}")
        object.__setattr__(self, "tables", {name: self._checked(name) for name in self.tables})
        object.__setattr__(self, "geometry", _frozen_dataset(self.geometry))
        self._check_geometry()

    def _checked(self, name: str) -> np.ndarray:
        _known(name, LOCAL)
        (start, end), table = endpoints(name), np.asarray(self.tables[name])
        check_table(table, self.sizes[start], self.sizes[end], f"{self.source or 'the grid'}: {name}")
        return _frozen(table, index_dtype(self.sizes[end]))

    def _check_geometry(self) -> None:
        widths = {name: table.shape[1] for name, table in self.tables.items()}
        sizes = {dim.value: size for dim, size in self.sizes.items()} | widths
        for dim, size in self.geometry.sizes.items():
            if size != sizes.get(str(dim), size):
                raise ConnectivityError(f"the geometry has {size} {dim}, the tables {sizes[str(dim)]}")

    @cached_property
    def sizes(self) -> dict[Dimension, int]:
        """How many cells, edges and vertices there are: ``grid.sizes[Cell]``."""
        return {Cell: len(self.tables["C2E"]), Edge: len(self.tables["E2C"]), Vertex: len(self.tables["V2E"])}

    def table(self, name: str) -> np.ndarray:
        """The neighbour table of an offset, (rows, slots), read-only, -1 where there is no neighbour.

        Raises:
            ArgumentError: no offset has that name.
        """
        if name in self.tables:
            return self.tables[name]
        if name not in self._derived:
            _known(name, DERIVATIONS)
            self._derived[name] = _frozen(DERIVATIONS[name](self.table))
        return self._derived[name]

    def connectivity(self, name: str) -> Connectivity:
        """That table as a connectivity, made once: ``grid.connectivity("E2C")``."""
        if name not in self._connectivities:
            table = self.table(name)
            start, end = endpoints(name)
            domain = {start: table.shape[0], LOCAL[name]: table.shape[1]}
            self._connectivities[name] = as_connectivity(domain, end, table, skip_value=SKIP)
        return self._connectivities[name]

    def mesh_of(self, *names: str) -> Mesh:
        """A mesh of the named offsets only: cheaper than `mesh` on a large grid."""
        return Mesh({name: self.connectivity(name) for name in names})

    @cached_property
    def mesh(self) -> Mesh:
        """All offsets as one mesh, to pass as offset provider or to enter: ``with grid.mesh: ...``."""
        return self.mesh_of(*LOCAL)

    def __getitem__(self, name: str) -> np.ndarray:
        """A geometry variable as a read-only NumPy array: ``grid["cell_area"]``."""
        return self.variable(name).values

    def __contains__(self, name: object) -> bool:
        return name in self.geometry.variables

    def __iter__(self) -> Iterator[str]:
        """The names of the geometry variables."""
        return (str(name) for name in self.geometry.variables)

    def variable(self, name: str) -> xarray.DataArray:
        """A geometry variable with its dimensions and units."""
        if name not in self:
            raise _unknown("geometry variable", name, list(self))
        return self.geometry[name]

    def field(self, name: str, dtype: Any = None) -> Field:
        """A geometry variable as a field; `dtype` converts it first (float64 needs JAX's x64 mode).

        Raises:
            ArgumentError: there is no such variable, or it isn't one over the mesh.
            DtypeError: it has 64 bits and x64 is off.
        """
        from fieldjax.embedded import as_field

        variable = self.variable(name)
        domain = {_dimension(name, dim): size for dim, size in variable.sizes.items()}
        return as_field(domain, variable.values, dtype)

    def to_xarray(self) -> xarray.Dataset:
        """Geometry and tables, those of the file as `<offset>_table`, in one dataset."""
        tables = {f"{name}_table": _table_variable(name, table) for name, table in self.tables.items()}
        return self.geometry.assign(tables)

    def __repr__(self) -> str:
        cells, edges, vertices = self.sizes.values()
        derived = [name for name in LOCAL if name not in self.tables]
        return "\n".join(
            (
                f"Grid: {self.source or 'unnamed'}",
                f"  {cells} cells, {edges} edges, {vertices} vertices",
                f"  tables {' '.join(self.tables)}, derived on demand {' '.join(derived)}",
                f"  geometry {' '.join(self)}",
            )
        )


def _frozen(values: Any, dtype: Any = None) -> np.ndarray:
    given = np.asarray(values)
    copy = np.array(given, dtype=dtype or given.dtype.newbyteorder("="))
    copy.flags.writeable = False
    return copy


def _frozen_dataset(dataset: xarray.Dataset) -> xarray.Dataset:
    frozen = {
        name: (variable.dims, _frozen(variable.values), variable.attrs) for name, variable in dataset.variables.items()
    }
    return type(dataset)(frozen, attrs=dataset.attrs)


def _dimension(name: str, dim: Any) -> Dimension:
    if dim not in DIMENSIONS:
        raise ArgumentError(
            f"{name} can't be a field: {dim!r} is no dimension of the mesh",
            hints=[f"grid[{name!r}] is its array"],
        )
    return DIMENSIONS[dim]


def _table_variable(name: str, table: np.ndarray) -> tuple[tuple[str, str], np.ndarray, dict[str, Any]]:
    start, _ = endpoints(name)
    return (start.value, name), table, {"start_index": 0, "missing_value": SKIP}


def _known(name: str, names: Mapping[str, Any]) -> None:
    if name not in names:
        raise _unknown("offset", name, list(LOCAL))


def _unknown(what: str, name: str, names: list[str]) -> ArgumentError:
    close = get_close_matches(str(name), names, n=3)
    return ArgumentError(
        f"there is no {what} {name!r}",
        notes=[f"there are {', '.join(names)}"],
        hints=[f"did you mean {' or '.join(map(repr, close))}?"] if close else [],
    )
