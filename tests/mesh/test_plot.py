"""Plots: what is drawn, and where."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from fieldjax.domain import Dimension, domain  # noqa: E402
from fieldjax.embedded import as_field  # noqa: E402
from fieldjax.errors import ArgumentError  # noqa: E402
from fieldjax.mesh import icosahedron, plot  # noqa: E402
from fieldjax.mesh.names import Cell, Edge, K, Vertex  # noqa: E402


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def corners(drawn):
    return np.array([path.vertices for path in drawn.get_paths()])


@pytest.mark.parametrize(("dim", "name"), [(Cell, "clat"), (Edge, "elat"), (Vertex, "vlat")])
def test_half_of_the_sphere_is_seen(r2b1, dim, name):
    drawn = plot(r2b1[name], r2b1, view=(0, 90))
    assert 0.4 < len(drawn.get_paths()) / r2b1.sizes[dim] < 0.6
    assert drawn.get_array().min() > np.radians(-15)
    assert np.abs(corners(drawn)).max() <= 1


@pytest.mark.parametrize("name", ["clon", "elon", "vlon"])
def test_longitudes_and_latitudes(r2b1, name):
    drawn = plot(r2b1[name], r2b1, projection="lonlat", view=(90, 0), colorbar=False)
    outlines = corners(drawn)
    assert len(outlines) == r2b1[name].size
    middle = outlines[..., 0].mean(axis=1)
    assert -91 - 30 < middle.min() < middle.max() < 271 + 30
    low = np.abs(outlines[..., 1]).max(axis=1) < 60
    assert np.ptp(outlines[low][..., 0], axis=1).max() < 60
    apart = np.abs(np.exp(1j * np.radians(middle)) - np.exp(1j * drawn.get_array()))[low]
    assert np.max(apart) < 0.2


def test_polygons_have_the_area_of_their_cells(r2b1):
    """Seen from above, nearly; duals are convex and so their corners are in order."""
    for name, area in (("vlat", "dual_area"), ("clat", "cell_area")):
        drawn = plot(r2b1[name], r2b1, view=(0, 90), colorbar=False)
        x, y = np.moveaxis(corners(drawn), -1, 0)
        flat = np.abs((x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)) / 2
        near = drawn.get_array() > np.radians(70)
        seen = r2b1[area][r2b1[name] > np.radians(70)] / r2b1.geometry.attrs["sphere_radius"] ** 2
        assert np.allclose(np.sort(flat[near]), np.sort(seen), rtol=0.1)


def test_fields_say_where_they_live(r2b1):
    field = r2b1.field("vlat")
    assert len(plot(field, r2b1, projection="lonlat").get_paths()) == 162
    part = as_field(domain({Edge: (100, 200)}), r2b1["elat"][100:200])
    drawn = plot(part, r2b1, projection="lonlat", colorbar=False)
    whole = plot(r2b1["elat"], r2b1, projection="lonlat", colorbar=False)
    assert np.array_equal(corners(drawn), corners(whole)[100:200])


def test_axes_and_style_are_the_callers(r2b1):
    figure, (left, _) = plt.subplots(1, 2)
    drawn = plot(r2b1["clat"], r2b1, left, cmap="magma", clim=(0, 1), edgecolor="black")
    assert drawn.axes is left
    assert drawn.get_clim() == (0, 1)
    assert drawn.get_cmap().name == "magma"
    assert len(figure.axes) == 3


def test_a_limited_area(limited):
    for name in ("clat", "elat", "vlat"):
        drawn = plot(limited[name], limited, view=(0, 90), colorbar=False)
        assert len(drawn.get_paths()) == limited[name].size
        assert np.isfinite(corners(drawn)).all()


def test_a_plane():
    grid = icosahedron()
    flat = type(grid)(grid.tables, grid.geometry.drop_vars(["clon", "clat"]).assign_attrs(grid_geometry=4))
    drawn = plot(np.arange(20.0), flat, colorbar=False)
    assert len(drawn.get_paths()) == 20


def test_a_torus_is_drawn_without_a_tear():
    grid = icosahedron()
    attrs = {"grid_geometry": 2, "domain_length": 1.2, "domain_height": 1.2}
    flat = type(grid)(grid.tables, grid.geometry.drop_vars(["clon", "clat"]).assign_attrs(attrs))
    assert np.ptp(corners(plot(np.arange(20.0), flat)), axis=1).max() <= 1.2


def test_what_cannot_be_drawn_is_said(r2b1):
    with pytest.raises(ArgumentError, match="can't be drawn") as caught:
        plot(as_field(domain({Cell: 320, K: 2}), np.zeros((320, 2))), r2b1)
    assert "K(0)" in str(caught.value)
    with pytest.raises(ArgumentError, match="can't be drawn"):
        plot(as_field(domain({Dimension("I"): 320}), np.zeros(320)), r2b1)
    with pytest.raises(ArgumentError, match=r"shape \(7,\) fits no element") as caught:
        plot(np.zeros(7), r2b1)
    assert "320 Cell, 480 Edge, 162 Vertex" in str(caught.value)
    with pytest.raises(ArgumentError, match="no projection 'flat'"):
        plot(r2b1["clat"], r2b1, projection="flat")


def test_without_matplotlib_the_error_names_the_extra(run_python):
    source = """
import sys
sys.modules["matplotlib.pyplot"] = None
from fieldjax.mesh import icosahedron, plot
try:
    plot(icosahedron()["clat"], icosahedron())
except TypeError as error:
    print(error)
"""
    assert "pip install 'fieldjax[demo]'" in run_python(source)


def test_without_the_generator_the_error_names_the_extra(run_python):
    source = """
import sys
sys.modules["grid_generator"] = None
from fieldjax.mesh import icosahedral_grid
try:
    icosahedral_grid(2, 4)
except TypeError as error:
    print(error)
"""
    assert "pip install 'fieldjax[demo]'" in run_python(source)
