"""ICON's grid files: exact round trips, and what is wrong with a file is said."""

import numpy as np
import pytest
import xarray

from fieldjax.errors import ArgumentError, ConnectivityError
from fieldjax.mesh import Grid, cut, icosahedron, open_icon, renumber, write_icon
from fieldjax.mesh.icon import TABLES
from fieldjax.mesh.names import LOCAL, Cell


def assert_same(one, other):
    assert one.geometry.identical(other.geometry)
    assert list(one.geometry.attrs) == list(other.geometry.attrs)
    for name in TABLES:
        assert np.array_equal(one.table(name), other.table(name)), name


@pytest.fixture
def file(r2b1, tmp_path):
    """An ICON file as xarray sees it, and where it is."""
    path = tmp_path / "grid.nc"
    write_icon(r2b1, path)
    with xarray.open_dataset(path, engine="h5netcdf", decode_cf=False) as dataset:
        return dataset.load(), path


def stored(dataset, path):
    dataset.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize("name", ["r2b1", "limited", "shuffled"])
def test_round_trip_is_exact(name, request, tmp_path):
    grid = request.getfixturevalue(name)
    write_icon(grid, tmp_path / "one.nc")
    once = open_icon(tmp_path / "one.nc")
    assert_same(once, grid)
    write_icon(once, tmp_path / "two.nc")
    assert_same(open_icon(tmp_path / "two.nc"), once)
    assert once.source == str(tmp_path / "one.nc")


def test_tables_that_pentagons_leave_narrow_are_padded(tmp_path):
    write_icon(icosahedron(), tmp_path / "grid.nc")
    grid = open_icon(tmp_path / "grid.nc")
    assert grid.table("V2E").shape == (12, 6)
    assert (grid.table("V2E")[:, 5] == -1).all()
    assert (grid["edge_orientation"][:, 5] == 0).all()
    assert np.array_equal(grid.table("C2E2C"), icosahedron().table("C2E2C"))


def test_what_a_file_holds(file, r2b1):
    dataset, _ = file
    assert dict(dataset.sizes) == {
        "cell": 320, "edge": 480, "vertex": 162, "nv": 3, "nc": 2, "ne": 6,
        "max_chdom": 1, "cell_grf": 14, "edge_grf": 24, "vert_grf": 13,
    }  # fmt: skip
    assert dataset["edge_of_cell"].dims == ("nv", "cell")
    assert dataset["orientation_of_normal"].dims == ("nv", "cell")
    assert dataset["edge_orientation"].dims == ("ne", "vertex")
    assert dataset["vertex_of_cell"].min() == 1
    assert set(np.unique(dataset["edges_of_vertex"])) == {-1, *range(1, 481)}
    assert "_FillValue" not in dataset["clat"].attrs
    assert dataset.attrs["grid_root"] == 2
    assert dataset.attrs["uuidOfHGrid"] == r2b1.geometry.attrs["uuidOfHGrid"]


def test_missing_neighbours_may_be_zero(file, r2b1):
    dataset, path = file
    for variable, _ in TABLES.values():
        dataset[variable] = dataset[variable].where(dataset[variable] > 0, 0)
    grid = open_icon(stored(dataset, path))
    assert all(np.array_equal(grid.table(name), r2b1.table(name)) for name in LOCAL)


def test_units_are_supplied_where_a_file_leaves_them_out(file):
    dataset, path = file
    for name in ("clat", "cell_area", "edge_length"):
        del dataset[name].attrs["units"]
    dataset["elon"].attrs["units"] = "rad"
    grid = open_icon(stored(dataset, path))
    units = {name: grid.variable(name).attrs["units"] for name in ("clat", "cell_area", "edge_length", "elon")}
    assert units == {"clat": "radian", "cell_area": "m2", "edge_length": "m", "elon": "rad"}


def test_unknown_variables_are_kept_as_they_are(file, tmp_path):
    dataset, path = file
    dataset["clon_vertices"] = (("cell", "nv"), np.zeros((320, 3)), {"units": "radian"})
    dataset["child_cell_index"] = (("no", "cell"), np.zeros((4, 320), np.int32))
    dataset["cell_elevation"] = ("cell", np.arange(320.0), {"units": "m", "_FillValue": np.float64(-9.0)})
    dataset["version"] = ((), np.int32(3))
    dataset["zone_names"] = ("cell_grf", np.array([f"zone {i}" for i in range(14)], object))
    dataset["clat"].attrs["bounds"] = "clat_vertices"
    dataset["clat_vertices"] = (("cell", "nv"), np.ones((320, 3)), {"units": "radian"})
    grid = open_icon(stored(dataset, path))
    assert grid.variable("clon_vertices").dims == ("Cell", "nv")
    assert grid.variable("child_cell_index").dims == ("no", "Cell")
    assert grid.field("cell_elevation").shape == (320,)
    write_icon(grid, tmp_path / "again.nc")
    assert_same(open_icon(tmp_path / "again.nc"), grid)


def test_a_classic_file_is_read_too(file, r2b1, tmp_path):
    dataset, _ = file
    dataset.to_netcdf(tmp_path / "classic.nc", engine="scipy")
    grid = open_icon(tmp_path / "classic.nc")
    assert np.array_equal(grid.table("E2C2V"), r2b1.table("E2C2V"))
    assert grid["clat"].dtype == np.float64
    assert grid["clat"].dtype.isnative


def test_tables_may_be_stored_the_other_way_round(file, r2b1):
    dataset, path = file
    dataset["edge_of_cell"] = dataset["edge_of_cell"].transpose("cell", "nv")
    assert np.array_equal(open_icon(stored(dataset, path)).table("C2E"), r2b1.table("C2E"))


@pytest.mark.parametrize("name", ["edge_of_cell", "vlat"])
def test_a_missing_variable_is_named(file, name):
    dataset, path = file
    with pytest.raises(ArgumentError, match=f"grid.nc is no complete ICON file: no variable {name}"):
        open_icon(stored(dataset.drop_vars(name), path))


def test_a_missing_dimension_is_named(file):
    dataset, path = file
    with pytest.raises(ArgumentError, match="has no dimension cell"):
        open_icon(stored(dataset.rename(cell="ncells"), path))


def test_a_table_of_another_shape_is_refused(file):
    dataset, path = file
    with pytest.raises(ArgumentError, match=r"edge_of_cell is .*'nv': 2.*an ICON file has .*'nv': 3"):
        open_icon(stored(dataset.isel(nv=slice(2)), path))


@pytest.mark.parametrize("index", [481, -2, 2**31 - 1])
def test_an_index_out_of_range_is_named_with_file_variable_and_row(file, index):
    dataset, path = file
    dataset["edge_of_cell"][1, 6] = index
    with pytest.raises(ConnectivityError, match=rf"grid.nc: edge_of_cell, row 7, slot 2: index {index} is out of"):
        open_icon(stored(dataset, path))


def test_a_table_of_floats_is_refused(file):
    dataset, path = file
    dataset["edge_of_cell"] = dataset["edge_of_cell"].astype(float)
    with pytest.raises(ConnectivityError, match=r"grid\.nc: edge_of_cell holds float64"):
        open_icon(stored(dataset, path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_icon(tmp_path / "nothing.nc")


@pytest.mark.parametrize("content", [b"", b"C", b"a line of text\n", b"PK\x03\x04"])
def test_a_file_that_is_no_netcdf(tmp_path, content):
    path = tmp_path / "grid.nc"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"grid.nc is no netCDF file"):
        open_icon(path)


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
@pytest.mark.parametrize("part", [0.0005, 0.3, 0.9])
def test_a_truncated_file(file, engine, part):
    dataset, path = file
    dataset.to_netcdf(path, engine=engine)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(ArgumentError, match=r"can't be read: it is truncated or damaged"):
        open_icon(path)


def test_a_file_of_the_64_bit_data_format(tmp_path):
    (tmp_path / "grid.nc").write_bytes(b"CDF\x05" + bytes(100))
    with pytest.raises(ArgumentError, match="CDF-5"):
        open_icon(tmp_path / "grid.nc")


def test_another_kind_of_file_is_recognised(tmp_path):
    mpas = xarray.Dataset({"latCell": ("nCells", np.zeros(3))})
    with pytest.raises(ArgumentError, match="it looks like a file for open_mpas"):
        open_icon(stored(mpas, tmp_path / "mpas.nc"))
    ugrid = xarray.Dataset({"mesh": ((), 0, {"cf_role": "mesh_topology"})})
    with pytest.raises(ArgumentError, match="it looks like a file for open_ugrid"):
        open_icon(stored(ugrid, tmp_path / "ugrid.nc"))


def test_only_triangles_are_written(tmp_path):
    from fieldjax.mesh import from_polygons

    square = from_polygons([[0, 1, 2, 3]], [0.0, 0.1, 0.1, 0.0], [0.0, 0.0, 0.1, 0.1])
    with pytest.raises(ArgumentError, match="C2E has 4 slots, ICON's files have 3"):
        write_icon(square, tmp_path / "grid.nc")


def test_what_netcdf_has_no_type_for_is_named(r2b1, tmp_path):
    with_mask = Grid(r2b1.tables, r2b1.geometry.assign(mask=("Cell", r2b1["clat"] > 0)))
    with pytest.raises(ArgumentError, match=r"grid\.nc can't hold mask \(bool\)"):
        write_icon(with_mask, tmp_path / "grid.nc")


def test_a_grid_that_was_cut_or_renumbered_has_another_identity(r2b1):
    identities = {
        grid.geometry.attrs["uuidOfHGrid"]
        for grid in (r2b1, renumber(r2b1), renumber(r2b1, by="bandwidth"), cut(r2b1, np.arange(320) < 9))
    }
    assert len(identities) == 4
    assert cut(r2b1, np.arange(320) < 9).geometry.attrs["uuidOfHGrid"] in identities
    assert r2b1.sizes[Cell] == 320


def test_without_h5py_the_error_names_the_extra(run_python, tmp_path):
    source = f"""
import sys
sys.modules["h5py"] = None
from fieldjax.mesh import icosahedron, write_icon
try:
    write_icon(icosahedron(), {str(tmp_path / "grid.nc")!r})
except TypeError as error:
    print(error)
"""
    printed = run_python(source)
    assert "netCDF files of this kind need h5netcdf" in printed
    assert "pip install 'fieldjax[demo]'" in printed
