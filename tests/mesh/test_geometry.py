"""Every geometric quantity, held to an identity."""

import grid_generator
import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.errors import ArgumentError
from fieldjax.mesh import Grid, complete, cut, from_polygons, icosahedral_grid, icosahedron
from fieldjax.mesh.geometry import formulas
from fieldjax.mesh.icon import TABLES
from fieldjax.mesh.names import Cell, Edge, Vertex
from fieldjax.mesh.shape import CARTESIAN, Shape
from fieldjax.mesh.surface import EARTH_RADIUS, Plane, Sphere, dot, from_lonlat, to_lonlat, unit

SPHERE = 4 * np.pi * EARTH_RADIUS**2


def gather(values, table):
    """values[table], 0 where there is no neighbour."""
    return np.where(table == -1, 0.0, values[table])


def gradient(grid, p):
    c0, c1 = grid.table("E2C").T
    return (p[c1] - p[c0]) / grid["dual_edge_length"]


def divergence(grid, u):
    flux = grid["orientation_of_normal"] * gather(grid["edge_length"] * u, grid.table("C2E"))
    return flux.sum(axis=1) / grid["cell_area"]


def curl(grid, u):
    around = grid["edge_orientation"] * gather(grid["dual_edge_length"] * u, grid.table("V2E"))
    return around.sum(axis=1) / grid["dual_area"]


def xyz(grid, dim):
    shape = Shape(grid)
    return {Cell: shape.cells, Edge: shape.edges, Vertex: shape.vertices}[dim]


def test_euler_characteristic(global_grid):
    sizes = global_grid.sizes
    assert sizes[Cell] - sizes[Edge] + sizes[Vertex] == 2


def test_a_cut_of_the_sphere_is_a_disc(limited):
    assert limited.sizes[Cell] - limited.sizes[Edge] + limited.sizes[Vertex] == 1


@pytest.mark.parametrize(("root", "level"), [(1, 0), (2, 0), (3, 0), (1, 1), (2, 2)])
def test_sizes_of_root_and_level(root, level):
    sizes = icosahedral_grid(root, level).sizes
    n = root**2 * 4**level
    assert (sizes[Cell], sizes[Edge], sizes[Vertex]) == (20 * n, 30 * n, 10 * n + 2)


@pytest.mark.parametrize("level", range(4))
def test_a_bisected_icosahedron_is_the_unrelaxed_grid(level):
    ours = icosahedron(level)
    theirs = icosahedral_grid(1, level, optimize_global=False)
    assert ours.sizes == theirs.sizes
    for name in ("cell_area", "dual_area", "edge_length", "dual_edge_length"):
        assert np.allclose(np.sort(ours[name]), np.sort(theirs[name])), name
    assert (ours["edge_system_orientation"] == 1).all()


def test_levels_below_zero_are_refused():
    with pytest.raises(ArgumentError, match="the level must be at least 0, got -1"):
        icosahedron(-1)
    with pytest.raises(ArgumentError, match="R0B1: the root must be at least 1"):
        icosahedral_grid(0, 1)


def test_edges_and_dual_edges_are_perpendicular(global_grid):
    shape = Shape(global_grid)
    c0, c1 = global_grid.table("E2C").T
    assert np.allclose(dot(unit(shape.cells[c1] - shape.cells[c0]), shape.tangent), 0, atol=1e-9)


@pytest.mark.parametrize("name", ["cell_area", "dual_area"])
def test_areas_add_up_to_the_sphere(global_grid, name):
    assert np.isclose(global_grid[name].sum(), SPHERE, rtol=1e-12)
    assert (global_grid[name] > 0).all()


def test_another_radius_scales_lengths_and_areas(r2b1):
    small = icosahedral_grid(2, 1, radius=2.0)
    assert np.isclose(small["cell_area"].sum(), 16 * np.pi)
    assert np.isclose(small["dual_area"].sum(), 16 * np.pi)
    assert np.allclose(small["edge_length"] / 2.0, r2b1["edge_length"] / EARTH_RADIUS)


def test_areas_of_a_cut_are_those_of_its_cells(limited):
    recomputed = formulas(limited)
    cells, duals = (recomputed[name]()[1] for name in ("cell_area", "dual_area"))
    assert np.allclose(cells, limited["cell_area"])
    assert np.isclose(duals.sum(), cells.sum())
    assert (duals <= limited["dual_area"] * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["clon", "elat", "vlon"])
def test_coordinates_are_radians(r2b1, name):
    assert r2b1.variable(name).attrs["units"] == "radian"
    assert np.abs(r2b1[name]).max() <= np.pi


def test_what_the_generator_gives_is_what_the_formulas_give(r2b1):
    bare = Grid(r2b1.tables, r2b1.geometry.drop_vars([n for n in r2b1 if n not in ("clon", "clat", "vlon", "vlat")]))
    recomputed = complete(bare)
    for name in set(formulas(bare)) - {"clon", "elon", "vlon"}:
        assert recomputed[name].dtype == r2b1[name].dtype
        assert recomputed.variable(name).dims == r2b1.variable(name).dims
        atol = 1e-9 * max(1.0, np.abs(r2b1[name]).max())
        assert np.allclose(recomputed[name], r2b1[name], rtol=1e-9, atol=atol), name


def test_edge_middles_are_between_ends_and_cells(r2b1):
    half = r2b1["edge_length"] / 2
    assert np.allclose(r2b1["edge_vert_distance"], half[:, None])
    assert np.allclose(r2b1["edge_cell_distance"].sum(axis=1), r2b1["dual_edge_length"])


def test_cell_centres_are_as_far_from_all_three_vertices(r2b1):
    corners = Shape(r2b1).vertices[r2b1.table("C2V")]
    distance = Sphere().distance(corners, Shape(r2b1).cells[:, None])
    assert np.allclose(distance, distance[:, :1])


def test_normals_and_tangents_are_unit_vectors_in_the_surface(any_grid):
    normal, tangent = (
        np.stack([any_grid[f"edge_{which}_normal_cartesian_{axis}"] for axis in "xyz"], axis=-1)
        for which in ("primal", "dual")
    )
    up = xyz(any_grid, Edge)
    for vector in (normal, tangent):
        assert np.allclose(np.linalg.norm(vector, axis=1), 1)
        assert np.allclose(dot(vector, up), 0, atol=1e-12)
    assert np.allclose(dot(normal, tangent), 0, atol=1e-12)
    assert np.allclose(np.cross(up, tangent), normal)


@pytest.mark.parametrize("which", ["primal", "dual"])
def test_zonal_and_meridional_parts_make_up_the_vector(any_grid, which):
    zonal, meridional = (any_grid[f"{part}_normal_{which}_edge"] for part in ("zonal", "meridional"))
    assert np.allclose(zonal**2 + meridional**2, 1)
    lon, lat = any_grid["elon"], any_grid["elat"]
    assert np.allclose(any_grid[f"edge_{which}_normal_cartesian_z"], meridional * np.cos(lat), atol=1e-12)
    along_x = -np.sin(lon) * zonal - np.sin(lat) * np.cos(lon) * meridional
    assert np.allclose(any_grid[f"edge_{which}_normal_cartesian_x"], along_x, atol=1e-12)


def test_normals_point_from_the_first_cell_to_the_second(global_grid):
    normal = Shape(global_grid).normal
    c0, c1 = global_grid.table("E2C").T
    cells = xyz(global_grid, Cell)
    assert (dot(normal, cells[c1] - cells[c0]) > 0).all()


def test_the_tangent_follows_the_system_orientation(any_grid):
    v0, v1 = any_grid.table("E2V").T
    vertices = xyz(any_grid, Vertex)
    along = dot(Shape(any_grid).tangent, vertices[v1] - vertices[v0])
    assert (np.sign(along) == any_grid["edge_system_orientation"]).all()


def test_each_edge_leaves_one_cell_and_enters_the_other(any_grid):
    signs, edges = any_grid["orientation_of_normal"], any_grid.table("C2E")
    total = np.bincount(edges.ravel(), signs.ravel(), minlength=any_grid.sizes[Edge])
    inner = (any_grid.table("E2C") != -1).all(axis=1)
    assert (total[inner] == 0).all()
    assert (np.abs(total[~inner]) == 1).all()


def test_each_edge_leaves_one_vertex_and_arrives_at_the_other(any_grid):
    signs, edges = any_grid["edge_orientation"], any_grid.table("V2E")
    assert ((signs == 0) == (edges == -1)).all()
    total = np.bincount(np.where(edges == -1, 0, edges).ravel(), signs.ravel(), minlength=any_grid.sizes[Edge])
    assert (total == 0).all()


def test_curl_of_a_gradient_is_zero(global_grid):
    p = np.random.default_rng(1).normal(size=global_grid.sizes[Cell])
    u = gradient(global_grid, p)
    scale = np.abs(u).max() / global_grid["edge_length"].min()
    assert np.abs(curl(global_grid, u)).max() < 1e-12 * scale


def test_divergence_of_a_curl_is_zero(global_grid):
    """Of the flow u · edge_length = ψ(v1) - ψ(v0) along a stream function ψ on vertices."""
    stream = np.random.default_rng(2).normal(size=global_grid.sizes[Vertex])
    v0, v1 = global_grid.table("E2V").T
    u = global_grid["edge_system_orientation"] * (stream[v1] - stream[v0]) / global_grid["edge_length"]
    scale = np.abs(u).max() / global_grid["edge_length"].min()
    assert np.abs(divergence(global_grid, u)).max() < 1e-12 * scale


def test_gauss_and_stokes_on_the_sphere(global_grid):
    u = np.random.default_rng(3).normal(size=global_grid.sizes[Edge])
    inflow = global_grid["cell_area"] * divergence(global_grid, u)
    assert abs(inflow.sum()) < 1e-10 * np.abs(inflow).max() * inflow.size
    circulation = global_grid["dual_area"] * curl(global_grid, u)
    assert abs(circulation.sum()) < 1e-10 * np.abs(circulation).max() * circulation.size


def test_divergence_is_minus_the_adjoint_of_the_gradient(global_grid):
    """Up to weights: Σ p div(u) A_c = -Σ grad(p) u l d."""
    rng = np.random.default_rng(4)
    p, u = rng.normal(size=global_grid.sizes[Cell]), rng.normal(size=global_grid.sizes[Edge])
    left = (p * divergence(global_grid, u) * global_grid["cell_area"]).sum()
    weight = global_grid["edge_length"] * global_grid["dual_edge_length"]
    assert np.isclose(left, -(gradient(global_grid, p) * u * weight).sum())


def test_vorticity_of_solid_rotation_is_positive_in_the_north():
    grid = icosahedral_grid(2, 3)
    omega = 7.292e-5
    u = omega * EARTH_RADIUS * np.cos(grid["elat"]) * grid["zonal_normal_primal_edge"]
    assert np.allclose(curl(grid, u), 2 * omega * np.sin(grid["vlat"]), atol=0.02 * omega)
    # Two neighbours' errors of opposite sign leave first-order noise in the divergence.
    assert np.abs(divergence(grid, u)).max() < 0.02 * omega


def test_a_single_cell_has_geometry_at_its_boundary():
    square = from_polygons([[0, 1, 2, 3]], [0.0, 0.1, 0.1, 0.0], [0.0, 0.0, 0.1, 0.1], radius=1.0)
    assert np.isclose(square["dual_area"].sum(), square["cell_area"][0])
    assert (square["orientation_of_normal"] == 1).all()
    assert np.allclose(square["dual_edge_length"], square["edge_cell_distance"][:, 0])
    assert (square["edge_cell_distance"][:, 1] == 0).all()
    assert np.isfinite(np.concatenate([square[name].ravel() for name in square])).all()


def test_clockwise_cells_have_positive_areas_too():
    grid = icosahedron()
    turned = from_polygons(grid.table("C2V")[:, ::-1], grid["vlon"], grid["vlat"])
    assert np.allclose(turned["cell_area"], grid["cell_area"])
    assert np.isclose(turned["dual_area"].sum(), SPHERE)


def test_geometry_needs_vertices(r2b1):
    with pytest.raises(ArgumentError, match="needs the vertices' coordinates"):
        complete(Grid(r2b1.tables, r2b1.geometry.drop_vars([*r2b1])))


points = st.tuples(st.floats(-np.pi, np.pi), st.floats(-1.5, 1.5)).map(lambda p: from_lonlat(*p))


@given(points)
def test_coordinates_round_trip(p):
    assert np.allclose(from_lonlat(*to_lonlat(p)), p)
    assert np.isclose(np.linalg.norm(p), 1)


@given(points, points, points)
def test_distance_is_a_metric(p, q, r):
    sphere = Sphere(1.0)
    assert np.isclose(sphere.distance(p, q), sphere.distance(q, p))
    assert sphere.distance(p, r) <= sphere.distance(p, q) + sphere.distance(q, r) + 1e-9
    assert sphere.distance(p, p) < 1e-15
    assert np.isclose(sphere.distance(p, -p), np.pi)


@given(points, points, points)
def test_triangle_area_is_alternating_and_agrees_with_girard(p, q, r):
    sphere = Sphere(1.0)
    area = sphere.triangle_area(p, q, r)
    assert np.isclose(area, sphere.triangle_area(q, r, p), atol=1e-9)
    assert np.isclose(area, -sphere.triangle_area(q, p, r), atol=1e-9)
    normals = [np.cross(a, b) for a, b in ((p, q), (q, r), (r, p))]
    if min(np.linalg.norm(n) for n in normals) > 1e-3 and abs(area) < 3:
        angles = [
            np.pi - sphere.distance(unit(a), unit(b)) for a, b in zip(normals, normals[1:] + normals[:1], strict=True)
        ]
        assert np.isclose(abs(area), sum(angles) - np.pi, atol=1e-6)


def test_small_triangles_keep_their_digits():
    size = 1e-7
    p, q, r = (from_lonlat(0.3 + a * size, b * size) for a, b in ((0, 0), (1, 0), (0, 1)))
    assert np.isclose(Sphere(1.0).triangle_area(p, q, r), size**2 / 2, rtol=1e-6)


def test_plane():
    plane, (p, q, r) = Plane(), np.array([[0.0, 0, 0], [3.0, 0, 0], [0.0, 4.0, 0]])
    assert plane.distance(q, r) == 5
    assert plane.triangle_area(p, q, r) == 6
    assert plane.onto(p).tolist() == [0, 0, 0]
    assert plane.up(p).tolist() == [0, 0, 1]
    assert plane.components(p, q) == (3, 0)


def torus():
    """A torus of equilateral triangles, made by the generator, and what it says of the geometry."""
    made = grid_generator.generate_grid(grid_generator.TorusGridSpec(nx=6, ny=4, edge_length=100.0))
    tables = {name: made.connectivity[variable] for name, (variable, _) in TABLES.items()}
    points = {Cell: made.cell_center_xyz, Edge: made.edge_center_xyz, Vertex: made.vertices}
    coordinates = {
        CARTESIAN[dim].format(axis): (dim.value, xyz[:, i])
        for dim, xyz in points.items()
        for i, axis in enumerate("xyz")
    }
    return Grid(tables, xarray.Dataset(coordinates, attrs=made.metadata)), made.geometry


def test_a_torus_has_no_seam():
    grid, expected = torus()
    whole = complete(grid)
    assert grid.sizes[Cell] - grid.sizes[Edge] + grid.sizes[Vertex] == 0
    for name in set(whole) & set(expected):
        assert np.allclose(whole[name], expected[name]), name
    bare = Grid(grid.tables, grid.geometry[[name for name in grid if name.endswith("vertices")]])
    for name in ("cell_area", "dual_area", "dual_edge_length", "orientation_of_normal"):
        assert np.allclose(complete(bare)[name], expected[name]), name
    assert "clon" not in whole


def test_a_channel_has_periods_along_x_only():
    grid, _ = torus()
    channel = Grid(grid.tables, grid.geometry.assign_attrs(grid_geometry=3))
    assert Shape(channel).surface == Plane((600.0, np.inf))
    assert Shape(Grid(grid.tables, grid.geometry.assign_attrs(grid_geometry=4))).surface == Plane()


def test_cut_of_a_cut(limited):
    inner = cut(limited, limited["clat"] > np.radians(70))
    assert (inner["source_cell"] < limited.sizes[Cell]).all()
    assert np.array_equal(inner["clat"], limited["clat"][inner["source_cell"]])
