"""The `Grid`: access, errors, conversion."""

import copy
import pickle

import jax
import numpy as np
import pytest

from fieldjax.domain import domain
from fieldjax.errors import ArgumentError, ConnectivityError, DtypeError
from fieldjax.mesh import Grid, from_polygons, icosahedron
from fieldjax.mesh.grid import CORE
from fieldjax.mesh.names import E2C, LOCAL, C2EDim, Cell, E2CDim, Edge, K
from tests.refusals import refused


def test_geometry_is_read_only(r2b1):
    for name in r2b1:
        with pytest.raises(ValueError, match="read-only"):
            r2b1[name][...] = 0


def test_tables_are_copies(r2b1):
    given = {name: table.copy() for name, table in r2b1.tables.items()}
    grid = Grid(given, r2b1.geometry)
    given["E2C"][:] = 0
    assert np.array_equal(grid.table("E2C"), r2b1.table("E2C"))


def test_names_of_geometry(r2b1):
    assert "clat" in r2b1
    assert "clot" not in r2b1
    assert {"clat", "cell_area", "refin_c_ctrl", "start_idx_e"} <= set(r2b1)
    with pytest.raises(ArgumentError, match="there is no geometry variable 'clot'") as caught:
        r2b1["clot"]
    assert "did you mean 'clon'" in str(caught.value)


def test_every_length_area_and_angle_has_a_unit(r2b1):
    for name in r2b1:
        if not name.startswith(("refin", "start", "end", "parent", "source")):
            assert r2b1.variable(name).attrs["units"] in {"radian", "m", "m2", "1"}, name


def test_fields(r2b1):
    area = r2b1.field("cell_area")
    assert area.domain == domain({Cell: 320})
    assert np.array_equal(area.asnumpy(), r2b1["cell_area"])
    assert r2b1.field("orientation_of_normal").domain == domain({Cell: 320, C2EDim: 3})
    assert r2b1.field("cell_area", dtype="float32").dtype == np.float32
    with pytest.raises(ArgumentError, match="start_idx_c can't be a field: 'max_chdom'"):
        r2b1.field("start_idx_c")


def test_a_float64_field_needs_x64():
    grid = icosahedron()
    with jax.enable_x64(False):
        with pytest.raises(DtypeError):
            grid.field("cell_area")
        assert grid.field("cell_area", dtype="float32").dtype == np.float32


def test_the_mesh_holds_every_offset(limited):
    mesh = limited.mesh
    assert set(mesh) == set(LOCAL)
    for name, connectivity in mesh.items():
        assert np.array_equal(connectivity.asnumpy(), limited.table(name))
        assert connectivity.skip_value == -1
    assert mesh["E2C"].domain == domain({Edge: limited.sizes[Edge], E2CDim: 2})
    assert mesh["E2C"].codomain == E2C.source == Cell


def test_a_mesh_of_some_offsets_shares_their_connectivities(r2b1):
    some = r2b1.mesh_of("E2C", "C2E")
    assert set(some) == {"E2C", "C2E"}
    assert some["E2C"].handle is r2b1.mesh["E2C"].handle


def test_asking_twice_derives_once(r2b1):
    assert r2b1.table("E2C2V") is r2b1.table("E2C2V")
    assert r2b1.connectivity("E2C") is r2b1.connectivity("E2C")
    assert r2b1.mesh is r2b1.mesh


def test_to_xarray_holds_geometry_and_tables(r2b1, tmp_path):
    dataset = r2b1.to_xarray()
    assert dataset["E2C_table"].dims == ("Edge", "E2C")
    assert dataset["cell_area"].attrs["units"] == "m2"
    assert set(r2b1) <= set(dataset.variables)
    dataset.to_netcdf(tmp_path / "any.nc", engine="h5netcdf")


def test_repr(r2b1):
    text = repr(r2b1)
    assert text.startswith("Grid: R2B1\n  320 cells, 480 edges, 162 vertices\n")
    assert "cell_area" in text


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_are_equal(duplicate):
    grid = icosahedron()
    other = duplicate(grid)
    assert other.geometry.identical(grid.geometry)
    assert all(np.array_equal(other.table(name), grid.table(name)) for name in LOCAL)
    assert other.mesh["E2C"].handle is grid.mesh["E2C"].handle


def rebuilt(grid, **changes):
    return Grid({name: changes.get(name, grid.tables[name]) for name in CORE}, grid.geometry, "g")


def test_malformed_tables_are_refused(r2b1):
    e2c = r2b1.table("E2C")
    with pytest.raises(ConnectivityError, match="g: E2C, row 2, slot 1: index 320 is out of range"):
        rebuilt(r2b1, E2C=np.where((np.indices(e2c.shape) == [[[2]], [[1]]]).all(axis=0), 320, e2c))
    with pytest.raises(ConnectivityError, match="index -2"):
        rebuilt(r2b1, E2C=np.full_like(e2c, -2))
    with pytest.raises(ConnectivityError, match="g: C2E, row 316, slot 2: index 479 is out of range"):
        rebuilt(r2b1, E2C=e2c[:-1])
    with pytest.raises(ConnectivityError, match="g: E2V has 479 rows, expected 480"):
        rebuilt(r2b1, E2V=r2b1.table("E2V")[:-1])
    with pytest.raises(ConnectivityError, match="g: E2C is float64"):
        rebuilt(r2b1, E2C=e2c.astype(float))
    with pytest.raises(ConnectivityError, match="a grid needs the tables V2C, V2E"):
        Grid({name: r2b1.tables[name] for name in CORE[:4]}, r2b1.geometry)
    with pytest.raises(ArgumentError, match="no offset 'X2C'"):
        Grid(dict(r2b1.tables) | {"X2C": e2c}, r2b1.geometry)


def test_geometry_of_another_size_is_refused(r2b1):
    with pytest.raises(ConnectivityError, match="the geometry has 319 Cell, the tables 320"):
        Grid(r2b1.tables, r2b1.geometry.isel(Cell=slice(319)))
    with pytest.raises(ConnectivityError, match="the geometry has 2 C2E, the tables 3"):
        Grid(r2b1.tables, r2b1.geometry.isel(C2E=slice(2)))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[0, 1, -1]], r"cell 0 is no polygon: \[0, 1, -1\]"),
        ([[0, -1, 1, 2]], "cell 0 is no polygon"),
        ([[0, 1, 5]], "slot 2: index 5 is out of range"),
        ([[0, 1, 2], [0, 1, 3], [1, 0, 4]], r"edge 0 has more than two cells: \[0, 1, 2\]"),
        ([0, 1, 2], "expected int"),
    ],
)
def test_polygons_that_are_no_mesh_are_refused(cells, message):
    with refused(message, ConnectivityError):
        from_polygons(cells, np.arange(5.0) / 10, [0.0, 0.1, 0.0, 0.2, 0.1])


def test_the_vertical_dimension_is_vertical():
    assert domain({Cell: 2, K: 3}).dims == (Cell, K)


def test_importing_meshes_imports_neither_xarray_nor_matplotlib(run_python):
    modules = "('xarray', 'matplotlib', 'scipy.sparse.csgraph', 'h5netcdf', 'grid_generator')"
    printed = run_python(f"import sys, fieldjax.mesh; print([m for m in {modules} if m in sys.modules])")
    assert printed.strip() == "[]"
