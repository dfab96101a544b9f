"""A real MPAS mesh: hexagons, 12 pentagons, TRiSK weights."""

from pathlib import Path

import numpy as np
import pytest
import xarray

from fieldjax.errors import ArgumentError, ConnectivityError
from fieldjax.mesh import complete, cut, from_polygons, open_mpas, renumber
from fieldjax.mesh.derive import DERIVATIONS
from fieldjax.mesh.names import LOCAL, Cell, E2C2EDim, Edge, Vertex
from fieldjax.mesh.shape import Shape
from fieldjax.mesh.surface import Plane

FILE = Path(__file__).parents[3] / "shared/data/mesh.QU.1920km.151026.nc"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the MPAS mesh isn't ours to ship; see shared/data")


@pytest.fixture(scope="module")
def mpas():
    return open_mpas(FILE)


@pytest.fixture
def file():
    with xarray.open_dataset(FILE, engine="scipy", decode_cf=False) as dataset:
        loaded = dataset.load()
    loaded.encoding = {}
    return loaded


def sets(table):
    return [set(row.tolist()) - {-1} for row in table]


def gather(values, table):
    return np.where(table == -1, 0.0, values[table])


def test_sizes(mpas):
    assert list(mpas.sizes.values()) == [162, 480, 320]
    widths = {name: mpas.table(name).shape[1] for name in LOCAL}
    assert widths == {
        "C2E": 6, "C2V": 6, "C2E2C": 6, "C2E2CO": 7, "C2E2C2E": 36, "C2E2C2E2C": 36,
        "E2C": 2, "E2V": 2, "E2C2V": 10, "E2C2E": 12, "E2C2EO": 13,
        "V2C": 3, "V2E": 3, "V2E2V": 3,
    }  # fmt: skip


def test_pentagons_are_one_short(mpas):
    for name in ("C2E", "C2V", "C2E2C"):
        assert np.bincount((mpas.table(name) == -1).sum(axis=1)).tolist() == [150, 12], name


def test_what_the_file_gives_is_what_would_be_derived(mpas):
    for name in ("C2E2C", "E2C2E"):
        derived = DERIVATIONS[name](mpas.tables.__getitem__)
        assert sets(derived) == sets(mpas.table(name))
    edges = from_polygons(mpas.table("C2V"), mpas["vlon"], mpas["vlat"])
    assert {frozenset(row) for row in edges.table("E2V").tolist()} == {
        frozenset(row) for row in mpas.table("E2V").tolist()
    }


def test_core_tables_are_mutual_inverses(mpas):
    for there, back in (("C2E", "E2C"), ("C2V", "V2C"), ("E2V", "V2E")):
        forward = {(i, j) for i, row in enumerate(sets(mpas.table(there))) for j in row}
        assert forward == {(i, j) for j, row in enumerate(sets(mpas.table(back))) for i in row}


def test_names_and_units(mpas):
    assert mpas.variable("cell_area").attrs == {"units": "m2", "mpas_name": "areaCell"}
    assert mpas.variable("weightsOnEdge").dims == ("Edge", "E2C2E")
    assert mpas.variable("kiteAreasOnVertex").dims == ("Vertex", "V2C")
    assert mpas.field("weightsOnEdge").domain.dims == (Edge, E2C2EDim)
    assert "nEdgesOnCell" not in mpas
    assert mpas.geometry.attrs["sphere_radius"] == 1.0


def test_areas_add_up_to_the_sphere(mpas):
    for name in ("cell_area", "dual_area", "kiteAreasOnVertex"):
        assert np.isclose(mpas[name].sum(), 4 * np.pi), name


def test_the_formulas_agree_with_the_file(mpas):
    bare = mpas.geometry[["vlon", "vlat", "clon", "clat", "elon", "elat"]].assign_attrs(sphere_radius=1.0)
    recomputed = complete(type(mpas)(mpas.tables, bare))
    for name in ("cell_area", "dual_area", "edge_length", "dual_edge_length"):
        assert np.allclose(recomputed[name], mpas[name], rtol=1e-6), name
    # angleEdge is the angle from east to the normal, to within 0.011 in this file.
    zonal, meridional = mpas["zonal_normal_primal_edge"], mpas["meridional_normal_primal_edge"]
    off_pole = np.abs(mpas["elat"]) < 1.5
    assert np.allclose(np.cos(mpas["angleEdge"])[off_pole], zonal[off_pole], atol=2e-2)
    assert np.allclose(np.sin(mpas["angleEdge"])[off_pole], meridional[off_pole], atol=2e-2)


def test_curl_of_a_gradient_and_divergence_of_a_curl_are_zero(mpas):
    rng = np.random.default_rng(0)
    p, stream = rng.normal(size=162), rng.normal(size=320)
    (c0, c1), (v0, v1) = mpas.table("E2C").T, mpas.table("E2V").T
    circulation = mpas["edge_orientation"] * gather(p[c1] - p[c0], mpas.table("V2E"))
    assert np.abs(circulation.sum(axis=1)).max() < 1e-13
    flux = mpas["edge_system_orientation"] * (stream[v1] - stream[v0])
    outflow = mpas["orientation_of_normal"] * gather(flux, mpas.table("C2E"))
    assert np.abs(outflow.sum(axis=1)).max() < 1e-13


def test_trisk_weights_are_antisymmetric_and_turn_the_wind(mpas):
    """Thuburn et al. (2009): Coriolis does no work, and solid rotation's tangential wind comes out."""
    weight, around = mpas["weightsOnEdge"], mpas.table("E2C2E")
    assert (weight[around == -1] == 0).all()
    length, distance = mpas["edge_length"], mpas["dual_edge_length"]
    dense = np.zeros((480, 481))
    np.put_along_axis(dense, around, weight * distance[:, None], axis=1)
    work = dense[:, :480] / length
    assert np.abs(work + work.T).max() < 1e-6 * np.abs(work).max()
    u, v = (np.cos(mpas["elat"]) * mpas[f"zonal_normal_{which}_edge"] for which in ("primal", "dual"))
    tangential = (weight * gather(u, around)).sum(axis=1)
    assert np.allclose(tangential, -v, atol=0.02)  # along k × n, which is against our tangent


def test_the_file_s_order_goes_along_when_cut_and_renumbered(mpas):
    for other in (renumber(mpas), renumber(mpas, by="bandwidth"), cut(mpas, mpas["clat"] > 0)):
        old = mpas["weightsOnEdge"][other["source_edge"]]
        there = other.table("E2C2E") != -1
        assert np.array_equal(other["weightsOnEdge"][there], old[there])
        assert (other["weightsOnEdge"][~there] == 0).all()
        assert sets(DERIVATIONS["E2C2E"](other.tables.__getitem__)) == sets(other.table("E2C2E"))


def test_behind_the_last_neighbour_a_file_may_hold_anything(mpas, file, tmp_path):
    unused = np.arange(6) >= file["nEdgesOnCell"].values[:, None]
    for name in ("edgesOnCell", "verticesOnCell", "cellsOnCell"):
        file[name] = file[name].where(~unused, 99999).astype("i4")
    file.to_netcdf(tmp_path / "mesh.nc", engine="scipy")
    other = open_mpas(tmp_path / "mesh.nc")
    assert all(np.array_equal(other.table(name), mpas.table(name)) for name in LOCAL)


def test_a_planar_periodic_mesh(file, tmp_path):
    """Not a real one: positions moved by a period, which a torus must not see."""
    file.attrs.update(on_a_sphere="NO", is_periodic="YES", x_period=9.0, y_period=0.0)
    file["xVertex"] = file["xVertex"] + 9.0
    file.to_netcdf(tmp_path / "plane.nc", engine="scipy")
    grid = open_mpas(tmp_path / "plane.nc")
    assert Shape(grid).surface == Plane((9.0, np.inf))
    assert grid.variable("cartesian_x_vertices").attrs["mpas_name"] == "xVertex"
    assert grid.variable("cartesian_x_vertices").attrs["units"] == "m"
    assert grid["edge_vert_distance"].max() < 1


def test_errors_name_the_file_and_what_is_wrong(file, tmp_path):
    path = tmp_path / "mesh.nc"
    file.drop_vars("edgesOnCell").to_netcdf(path, engine="scipy")
    with pytest.raises(ArgumentError, match=r"mesh.nc is no complete MPAS file: no variable edgesOnCell"):
        open_mpas(path)
    file["cellsOnEdge"][3, 1] = 163
    file.to_netcdf(path, engine="scipy")
    with pytest.raises(ConnectivityError, match=r"mesh.nc: cellsOnEdge, row 4, slot 2: index 163 is out of range"):
        open_mpas(path)


def test_the_sphere_is_closed(mpas):
    sizes = mpas.sizes
    assert sizes[Cell] - sizes[Edge] + sizes[Vertex] == 2
