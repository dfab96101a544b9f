"""UGRID files: written here in every way that the convention allows, read as one mesh."""

import numpy as np
import pytest
import xarray

from fieldjax.errors import ArgumentError, ConnectivityError
from fieldjax.mesh import from_polygons, icosahedron, open_ugrid
from fieldjax.mesh.names import LOCAL, Cell, Edge, Vertex
from fieldjax.mesh.surface import EARTH_RADIUS

# A triangle on a square on a pentagon's edge, counterclockwise.
LON = np.array([0.0, 10.0, 10.0, 0.0, 5.0, 3.0, 14.0])
LAT = np.array([0.0, 0.0, 10.0, 10.0, 15.0, -8.0, 5.0])
FACES = np.array([[0, 1, 2, 3, -1], [3, 2, 4, -1, -1], [0, 5, 1, -1, -1], [1, 6, 2, -1, -1]])


def dataset(faces=FACES, start=0, fill=-1, degrees=True, **attrs):
    lon, lat = (LON, LAT) if degrees else (np.radians(LON), np.radians(LAT))
    units = ("degrees_east", "degrees_north") if degrees else ("radian", "radian")
    table = np.where(faces == -1, fill, faces + start).astype("i4")
    topology = {
        "cf_role": "mesh_topology",
        "topology_dimension": 2,
        "node_coordinates": "node_x node_y",
        "face_node_connectivity": "faces",
    }
    return xarray.Dataset(
        {
            "mesh": ((), 0, topology | attrs),
            "node_x": ("node", lon, {"units": units[0], "standard_name": "longitude"}),
            "node_y": ("node", lat, {"units": units[1], "standard_name": "latitude"}),
            "faces": (("face", "corner"), table, {"start_index": start, "_FillValue": np.int32(fill)}),
            "depth": ("face", np.arange(4.0), {"units": "m"}),
            "temperature": (("time", "node"), np.ones((2, 7)), {"units": "K"}),
            "elsewhere": ("time", np.zeros(2)),
        }
    )


@pytest.fixture
def stored(tmp_path):
    def store(data, engine="h5netcdf"):
        # _FillValue is an attribute here; xarray would decode and encode it.
        encoding = {name: {} if "_FillValue" in v.attrs else {"_FillValue": None} for name, v in data.items()}
        data.to_netcdf(tmp_path / "mesh.nc", engine=engine, encoding=encoding)
        return tmp_path / "mesh.nc"

    return store


@pytest.fixture
def expected():
    return from_polygons(FACES, np.radians(LON), np.radians(LAT))


def assert_same(grid, expected):
    for name in LOCAL:
        assert np.array_equal(grid.table(name), expected.table(name)), name
    for name in expected:
        assert np.allclose(grid[name], expected[name]), name


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
@pytest.mark.parametrize("options", [{}, {"start": 1, "fill": 0}, {"start": 1, "fill": -999}, {"degrees": False}])
def test_ways_to_say_the_same(stored, expected, options, engine):
    assert_same(open_ugrid(stored(dataset(**options), engine)), expected)


def test_a_transposed_table(stored, expected):
    data = dataset(face_dimension="face").transpose(..., "corner", "face")
    assert_same(open_ugrid(stored(data)), expected)


def test_floating_point_tables_with_nan(stored, expected):
    data = dataset()
    data["faces"] = (("face", "corner"), np.where(FACES == -1, np.nan, FACES))
    assert_same(open_ugrid(stored(data)), expected)
    data["faces"] = data["faces"] + 0.5
    with pytest.raises(ConnectivityError, match=r"mesh\.nc: faces holds float64"):
        open_ugrid(stored(data))


def test_coordinates_the_other_way_round(stored, expected):
    assert_same(open_ugrid(stored(dataset(node_coordinates="node_y node_x"))), expected)


def test_edges_keep_the_numbers_of_the_file(stored, expected):
    given = expected.table("E2V")[::-1, ::-1].copy()
    data = dataset(edge_node_connectivity="edges", edge_dimension="edge")
    data["edges"] = (("edge", "two"), given, {"start_index": 0})
    data["flux"] = ("edge", np.arange(len(given)))
    grid = open_ugrid(stored(data))
    assert np.array_equal(grid.table("E2V"), given)
    assert grid.variable("flux").dims == ("Edge",)
    assert np.array_equal(grid["edge_length"], expected["edge_length"][::-1])
    assert np.array_equal(grid.table("C2E"), np.where(FACES == -1, -1, len(given) - 1 - expected.table("C2E")))
    data["edges"][0] = [0, 4]
    with pytest.raises(ConnectivityError, match="1 sides of faces are not among the edges"):
        open_ugrid(stored(data))


def test_sizes_and_counts(expected):
    assert [expected.sizes[d] for d in (Cell, Edge, Vertex)] == [4, 10, 7]
    assert (expected.table("C2E") != -1).sum(axis=1).tolist() == [4, 3, 3, 3]
    assert (expected.table("E2C") == -1).any(axis=1).sum() == 7
    assert (expected["edge_system_orientation"] == 1).all()


def test_mixed_polygons_derive_too(expected):
    near = [set(row.tolist()) - {-1} for row in expected.table("C2E2C")]
    assert near == [{1, 2, 3}, {0}, {0}, {0}]
    side = int(np.flatnonzero((expected.table("E2C") == [0, 1]).all(axis=1))[0])
    around = expected.table("E2C2E")[side]
    square, triangle = (expected.table("C2E")[c].tolist() for c in (0, 1))
    turn = square.index(side)
    assert around[:3].tolist() == [square[(turn + k) % 4] for k in (1, 2, 3)]
    assert set(around[4:6].tolist()) == set(triangle[:3]) - {side}
    assert around[3] == around[6] == around[7] == -1
    opposite = expected.table("E2C2V")[side]
    assert set(opposite[:2].tolist()) == {2, 3}
    assert set(opposite[2:].tolist()) == {0, 1, 4, -1}


def test_data_comes_along(stored):
    grid = open_ugrid(stored(dataset()), radius=1.0)
    assert grid.field("depth").asnumpy().tolist() == [0, 1, 2, 3]
    assert grid.variable("temperature").dims == ("time", "Vertex")
    assert "elsewhere" not in grid
    assert grid.geometry.attrs["sphere_radius"] == 1.0


def test_a_plane(stored):
    data = dataset()
    for name in ("node_x", "node_y"):
        data[name].attrs = {"units": "m"}
    grid = open_ugrid(stored(data))
    assert grid["cell_area"].tolist() == [100, 25, 40, 20]
    assert np.isclose(grid["dual_area"].sum(), 185)
    assert "clon" not in grid
    assert grid.variable("cartesian_x_vertices").attrs["units"] == "m"
    assert np.allclose(np.hypot(grid["zonal_normal_primal_edge"], grid["meridional_normal_primal_edge"]), 1)


def test_which_mesh(stored):
    data = dataset()
    data["other"] = ((), 0, data["mesh"].attrs)
    data["network"] = ((), 0, {"cf_role": "mesh_topology", "topology_dimension": 1})
    path = stored(data)
    with pytest.raises(ArgumentError, match="has 2 2-D mesh topologies") as caught:
        open_ugrid(path)
    assert "2-D meshes there: mesh, other" in str(caught.value)
    assert open_ugrid(path, mesh="other").sizes[Cell] == 4
    with pytest.raises(ArgumentError, match="has no 2-D mesh topologies named 'network'"):
        open_ugrid(path, mesh="network")


def test_what_is_missing_is_named(stored):
    with pytest.raises(ArgumentError, match="has no 2-D mesh topologies"):
        open_ugrid(stored(dataset().drop_vars("mesh")))
    with pytest.raises(ArgumentError, match="no variable faces"):
        open_ugrid(stored(dataset().drop_vars("faces")))
    data = dataset()
    del data["mesh"].attrs["node_coordinates"]
    with pytest.raises(ArgumentError, match="no attribute node_coordinates"):
        open_ugrid(stored(data))
    data = dataset(start=1, fill=0)
    data["faces"][1, 2] = 8
    with pytest.raises(ConnectivityError, match=r"mesh\.nc: faces, row 2, slot 3: index 8 is out of range"):
        open_ugrid(stored(data))


def test_the_same_edges_as_xugrid(stored):
    xugrid = pytest.importorskip("xugrid")
    grid = icosahedron()
    theirs = xugrid.Ugrid2d(grid["vlon"], grid["vlat"], -1, grid.table("C2V").astype(int))
    assert {frozenset(e) for e in theirs.edge_node_connectivity.tolist()} == {
        frozenset(e) for e in grid.table("E2V").tolist()
    }
    assert np.isclose(grid["cell_area"].sum(), 4 * np.pi * EARTH_RADIUS**2)
