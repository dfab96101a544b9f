"""Names that programs written for gt4py.next import, from the module that stands in for it and from the front door."""

import builtins

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
import fieldjax.gt4py_compat as gtx

I, J = gtx.Dimension("I"), gtx.Dimension("J")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
FLOATS = gtx.Field[gtx.Dims[I], gtx.float32]

NAMES = """
    CartesianConnectivity Connectivity Device DeviceType Dimension DimensionKind Dims Domain Field
    FieldConstructor FieldOffset GridType IndexType UnitRange abs arccos arccosh arcsin arcsinh arctan arctanh
    as_connectivity as_field as_non_staggered as_offset astype bool broadcast cbrt ceil common concat_where
    constructors cos cosh domain empty errors exp ffront field_operator flip_staggered float float32 float64 floor
    fmod full gamma gtfn_cpu gtfn_gpu int int16 int32 int64 int8 is_scalar_type is_staggered isfinite isinf isnan
    itir_python log max_over maximum min_over minimum neg neighbor_sum ones power program scan_operator sin sinh
    sqrt tan tanh trunc tuple uint16 uint32 uint64 uint8 unit_range wait_for_compilation where zeros
""".split()  # noqa: SIM905  (a list of them fills the page)


@pytest.mark.parametrize("name", NAMES)
def test_the_front_door_finds_what_the_stand_in_has(name):
    assert hasattr(gtx, name)
    assert hasattr(fj, name)
    if name != "errors":  # the front door has its own errors, which know nothing of other names
        assert getattr(fj, name) is getattr(gtx, name)


def test_submodules_are_the_module_itself():
    assert gtx.common.UnitRange is gtx.constructors.UnitRange is fj.UnitRange
    assert gtx.ffront.fbuiltins.where is fj.where
    assert gtx.typing.OffsetProvider is gtx.common.OffsetProvider
    assert gtx.ffront.experimental.concat_where is fj.concat_where


def test_types_of_python_stay_its_own():
    assert (gtx.bool, gtx.float, gtx.int, gtx.tuple) == (builtins.bool, builtins.float, builtins.int, builtins.tuple)
    assert gtx.IndexType is np.int32


def copied():
    @gtx.field_operator(backend=gtx.gtfn_cpu, grid_type=gtx.GridType.CARTESIAN)
    def copy(f: FLOATS) -> FLOATS:
        return f + undefined if f is None else f  # noqa: F821

    return copy


def test_backends_by_their_names():
    f = gtx.ones({I: 3}, dtype=gtx.float32)
    for backend in (gtx.gtfn_cpu, gtx.itir_python):
        op = copied().with_grid_type(gtx.GridType.UNSTRUCTURED).with_backend(backend)
        out = gtx.zeros({I: 3}, dtype=gtx.float32)
        op(f, out=out, offset_provider={})
        np.testing.assert_array_equal(out.asnumpy(), 1.0)


def test_programs_and_scans_take_a_grid_type():
    @gtx.scan_operator(axis=K, init=0.0)
    def total(above, f):
        return above + f

    @gtx.program
    def run(f, out):
        total(f, out=out)

    f, out = gtx.ones({K: 3}, dtype=gtx.float32), gtx.zeros({K: 3}, dtype=gtx.float32)
    run.with_grid_type(gtx.GridType.CARTESIAN)(f, out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy(), [1, 2, 3])
    np.testing.assert_array_equal(total.with_grid_type(gtx.GridType.CARTESIAN)(f).asnumpy(), [1, 2, 3])


def test_except_clauses_catch_what_they_name():
    @gtx.field_operator
    def misspelt(f):
        return temprature + f  # noqa: F821

    @gtx.field_operator
    def wrong(f: FLOATS):
        return f

    f = gtx.ones({J: 3}, dtype=gtx.float32)
    with pytest.raises(gtx.errors.UndefinedSymbolError):
        misspelt(f)
    with pytest.raises(gtx.errors.DSLError):
        wrong(f)
    with pytest.raises(gtx.errors.MissingArgumentError):
        wrong()
    assert issubclass(gtx.errors.UndefinedSymbolError, gtx.errors.DSLError)
    assert gtx.errors.FieldjaxError is fj.FieldjaxError


@pytest.mark.parametrize("allocator", [None, np, jnp])
def test_constructors_that_share_an_allocator(allocator):
    make = gtx.FieldConstructor(allocator=allocator, device=gtx.Device(gtx.DeviceType.CPU))
    kind = jax.Array if allocator is jnp else np.ndarray
    for field, value in [
        (make.zeros({I: 3}, dtype=gtx.float32), 0),
        (make.ones({I: 3}, dtype=gtx.float32), 1),
        (make.full({I: 3}, 2.5, dtype=gtx.float32), 2.5),
        (make.as_field([I], np.full(3, 7.0, "float32")), 7),
        (gtx.as_field.partial(allocator=allocator)([I], np.full(3, 7.0, "float32")), 7),
    ]:
        assert isinstance(field.ndarray, kind)
        np.testing.assert_array_equal(field.asnumpy(), value)
    assert make.empty(gtx.domain({I: 3}), dtype=gtx.int32).dtype == gtx.int32


def test_a_device_of_jax_holds_the_field():
    device = jax.devices()[-1]
    assert gtx.zeros({I: 3}, dtype=gtx.float32, device=device).ndarray.devices() == {device}
    assert gtx.as_field([I], np.ones(3, "float32"), device=device).ndarray.devices() == {device}


@pytest.mark.parametrize("make", [gtx.zeros, gtx.ones, gtx.empty])
def test_a_misspelt_option_of_a_constructor_is_an_error(make):
    with pytest.raises(TypeError, match="dytpe"):
        make({I: 3}, dytpe=gtx.int32)


def test_numbers_are_told_from_fields():
    assert all(map(gtx.is_scalar_type, [1, 1.5, True, np.float32(2)]))
    assert not any(map(gtx.is_scalar_type, [gtx.ones({I: 2}), np.ones(2), "1"]))


def test_a_domain_without_out_says_what_is_missing():
    @gtx.field_operator
    def copy(f):
        return f + 0

    @gtx.program
    def run(f):
        copy(f, domain={I: (0, 2)})

    with pytest.raises(gtx.errors.DSLError, match="takes a `domain` only together with `out`") as caught:
        run(gtx.ones({I: 3}, dtype=gtx.float32))
    assert "in a program, give `out`" in caught.value.hints
