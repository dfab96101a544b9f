"""What a function is annotated to return is checked: dimensions, dtype and structure, where it was computed."""

from typing import NamedTuple, TypeVar

import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import ArgumentError, DimensionError, DtypeError
from fieldjax.gt4py_compat import Dims, float32, int32
from tests.refusals import refused

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
CellField = fj.Field[Dims[Cell], float32]
CellKField = fj.Field[Dims[Cell, K], float32]


class Pair(NamedTuple):
    """Two fields."""

    wet: CellField
    dry: fj.Field[Dims[Cell], int32]


@pytest.fixture(params=["jax", None])
def backend(request):
    return request.param


def cells(dtype="float32"):
    return fj.as_field({Cell: 3}, np.arange(3, dtype=dtype))


def test_another_dtype_is_an_error_at_the_returned_expression(backend):
    @fj.field_operator(backend=backend)
    def op(f) -> fj.Field[Dims[Cell], int32]:
        return 2 * f

    with pytest.raises(DtypeError, match=r"the result is annotated Field\[\[Cell\], int32\], but is float32") as caught:
        op(cells())
    assert "return 2 * f\n" in str(caught.value)
    assert "help: convert it: `astype(..., int32)`" in str(caught.value)


def test_other_dimensions_are_an_error():
    @fj.field_operator
    def op(f) -> CellKField:
        return f

    message = r"the result is annotated Field\[\[Cell, K\], float32\], but has dimensions \(Cell\)"
    with refused(message, DimensionError):
        op(cells())


def test_a_number_is_no_field():
    @fj.field_operator
    def op(f) -> CellField:
        return 1.0

    with pytest.raises(DimensionError, match="but has no dimensions"):
        op(cells(), domain={Cell: 3})


def test_each_part_of_a_container_is_named():
    @fj.field_operator
    def op(f) -> tuple[CellField, tuple[CellField, CellKField]]:
        return f, (f, f)

    with pytest.raises(DimensionError, match=r"result\[1\]\[1\] is annotated"):
        op(cells())

    @fj.field_operator
    def named(f) -> Pair:
        return Pair(f, f)

    with pytest.raises(DtypeError, match=r"result\.dry is annotated .* but is float32"):
        named(cells())


@pytest.mark.parametrize("results", [(1, 2, 3), (1,)])
def test_the_number_of_results_counts(results):
    @fj.field_operator
    def op(f) -> tuple[CellField, CellField]:
        return tuple(n * f for n in results)

    with pytest.raises(ArgumentError, match=f"annotated as a tuple of 2, but has {len(results)} parts"):
        op(cells())


def test_one_value_and_several_are_told_apart():
    @fj.field_operator
    def one(f) -> tuple[CellField, CellField]:
        return f

    @fj.field_operator
    def two(f) -> CellField:
        return f, f

    with pytest.raises(ArgumentError, match="annotated as a tuple, but is one value"):
        one(cells())
    with pytest.raises(ArgumentError, match=r"annotated Field\[\[Cell\], float32\], but is a container"):
        two(cells())


def test_operators_inside_operators_and_bodies_of_scans_are_checked():
    @fj.field_operator
    def inner(f) -> fj.Field[Dims[Cell], int32]:
        return f + f

    @fj.field_operator
    def outer(f):
        return inner(f)

    with pytest.raises(DtypeError, match="the result is annotated"):
        outer(cells())

    @fj.scan_operator(axis=K, init=0.0)
    def total(above: float32, f: float32) -> int32:
        return above + f

    with pytest.raises(DtypeError, match="the result is annotated int32, but is float32"):
        total(fj.as_field({K: 3}, np.ones(3, "float32")))


def test_what_fits_passes(backend):
    @fj.field_operator(backend=backend)
    def op(f: CellField, g) -> tuple[CellField, tuple[CellField, ...], Pair, float32]:
        return f, (2 * f, f, f + 1), Pair(f, g), 1

    f, g = cells(), cells("int32")
    result = op(f, g, domain=(*[{Cell: 3}] * 6, {}))
    np.testing.assert_array_equal(result[1][0].asnumpy(), 2 * f.asnumpy())
    assert isinstance(result[2], Pair)


def test_annotations_that_say_nothing_are_for_people():
    @fj.field_operator
    def op(f: "a field of cells") -> "what you expect":  # noqa: F722
        return f

    assert op(cells()).domain == cells().domain


def test_type_variables_admit_every_dimension_and_dtype():
    D, T = TypeVar("D"), TypeVar("T")
    anywhere = fj.Field[Dims[D], T]

    @fj.field_operator
    def op(f: anywhere) -> anywhere:
        return f

    assert op(cells()).domain == cells().domain
    assert repr(anywhere) == "Field[[~D], T]"


def test_arguments_in_containers_are_checked():
    @fj.field_operator
    def op(pair: Pair, both: tuple[CellField, CellField]):
        return pair.wet + both[0]

    f, g = cells(), cells("int32")
    with pytest.raises(DtypeError, match=r"pair\.dry is annotated Field\[\[Cell\], int32\], but is float32"):
        op(Pair(f, f), (f, f))
    with pytest.raises(DtypeError, match=r"both\[1\] is annotated Field\[\[Cell\], float32\], but is int32"):
        op(Pair(f, g), (f, g))
    assert op(Pair(f, g), (f, f)).domain == f.domain


def test_signatures_in_messages_read_as_they_are_written():
    @fj.field_operator
    def op(f: CellField) -> CellField:
        return f

    with pytest.raises(ArgumentError, match=r"op\(f: Field\[\[Cell\], float32\]\) -> Field\[\[Cell\], float32\] was"):
        op()
