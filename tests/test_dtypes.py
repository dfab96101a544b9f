"""Dtypes against JAX itself: names, promotion over all pairs, literals, the x64 guard."""

import functools
import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from fieldjax import dtypes
from fieldjax.dtypes import (
    as_dtype,
    default_float,
    default_int,
    is_bool,
    is_floating,
    is_integer,
    maximum_of,
    minimum_of,
    of_literal,
    require_x64,
    result_type,
    x64_enabled,
)
from fieldjax.errors import DtypeError

NAMES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64"),
]
STRONG = [(np.dtype(name), False) for name in NAMES]
WEAK = [(np.dtype(name), True) for name in NAMES if name != "bool"]


@pytest.fixture(params=[True, False], ids=["x64", "x32"])
def x64(request):
    with jax.enable_x64(request.param):
        yield request.param


def representable(operands, x64):
    return all(x64 or dtype.itemsize < 8 for dtype, _ in operands)


def jax_says(*operands):
    """The (dtype, weak type) of a JAX operation on such values."""
    shapes = [jax.ShapeDtypeStruct((), dtype, weak_type=weak) for dtype, weak in operands]
    result = jax.eval_shape(functools.partial(jnp.where, True), *shapes)
    return result.dtype, result.weak_type


class TestNames:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_spelling_of_a_dtype(self, name):
        dtype = np.dtype(name)
        constant = getattr(dtypes, "bool_" if name == "bool" else name)
        for spelling in (dtype, dtype.type, dtype.str if name != "bfloat16" else name, constant):
            assert as_dtype(spelling) == dtype
        if name != "bool":
            assert as_dtype(name) == as_dtype(getattr(jnp, name)) == dtype
        assert as_dtype(jnp.bool_) == np.dtype(bool)

    @pytest.mark.parametrize("kind", [bool, int, float])
    def test_python_types_are_jax_defaults(self, kind, x64):
        assert as_dtype(kind) == as_dtype(kind.__name__) == jnp.asarray(kind(1)).dtype
        assert (default_int(), default_float()) == (as_dtype(int), as_dtype(float))
        assert x64_enabled() is x64

    def test_foreign_byte_order_becomes_native(self):
        assert as_dtype(">f8") == as_dtype(np.dtype("<f8")) == np.dtype("float64")
        assert as_dtype(">f8").isnative

    @pytest.mark.parametrize(
        "other",
        [
            *(None, complex, "complex64", str, object, "float65", "V4", 3, [("a", int)], {}),
            *(np.zeros(3), np.float32(1), jnp.zeros(3)),
            *(np.dtype("datetime64[s]"), ml_dtypes.int4, ml_dtypes.float8_e5m2),
        ],
        ids=repr,
    )
    def test_anything_else_is_refused(self, other):
        with pytest.raises(DtypeError, match="is not a dtype of fields\nnote: these are: bool, int8"):
            as_dtype(other)

    def test_the_error_names_it(self):
        with pytest.raises(TypeError, match=r"^complex is not a dtype"):
            as_dtype(complex)
        with pytest.raises(TypeError, match=r"^'float65' is not a dtype"):
            as_dtype("float65")


class TestPromotion:
    @pytest.mark.parametrize("left", STRONG + WEAK, ids=str)
    def test_pairs_are_jax(self, left, x64):
        for right in STRONG + WEAK:
            if representable([left, right], x64):
                assert result_type(left, right) == jax_says(left, right), right

    @pytest.mark.parametrize("only", STRONG + WEAK, ids=str)
    def test_one_operand_is_itself(self, only, x64):
        if representable([only], x64):
            assert result_type(only) == only

    def test_literals_are_public_result_type(self, x64):
        for (dtype, _), literal in itertools.product(STRONG, [True, 1, 1.0]):
            if representable([(dtype, False)], x64):
                assert result_type((dtype, False), of_literal(literal))[0] == jnp.result_type(dtype, literal)

    def test_several_at_once_are_jax(self, x64):
        """Not a fold over pairs: int8 with a weak float, then with bfloat16, keeps bfloat16 either way."""
        some = [STRONG[NAMES.index(name)] for name in ("bool", "int8", "uint32", "bfloat16", "float16")]
        some += [(as_dtype(int), True), (as_dtype(float), True)]
        for operands in itertools.product(some, repeat=3):
            strong = [dtype if not weak else dtype.type(1).item() for dtype, weak in operands]
            assert result_type(*operands)[0] == jnp.result_type(*strong)

    @pytest.mark.parametrize("name", ["int64", "uint64", "float64"])
    def test_an_operand_that_jax_would_truncate(self, name):
        with jax.enable_x64(False), pytest.raises(DtypeError, match=f"an operand is {name}, which JAX would"):
            result_type((np.dtype(name), False), (np.dtype("int8"), False))

    def test_answers_follow_the_configuration(self):
        pair = (np.dtype("uint32"), False), (np.dtype("int32"), False)
        with jax.enable_x64(True):
            assert result_type(*pair)[0] == np.dtype("int64")
        with jax.enable_x64(False):
            assert result_type(*pair)[0] == np.dtype("int32")
        with (
            jax.numpy_dtype_promotion("strict"),
            pytest.raises(DtypeError, match="JAX does not promote these"),
        ):
            result_type(*pair)

    def test_nothing(self):
        with pytest.raises(DtypeError, match="JAX does not promote these"):
            result_type()


class TestX64:
    @pytest.mark.parametrize("name", NAMES)
    def test_only_64_bits_need_it(self, name):
        dtype = np.dtype(name)
        with jax.enable_x64(True):
            require_x64(dtype, "the field")
        with jax.enable_x64(False):
            if dtype.itemsize < 8:
                require_x64(dtype, "the field")
                return
            with pytest.raises(DtypeError) as caught:
                require_x64(dtype, "the field")
        narrow = name.replace("64", "32")
        assert str(caught.value) == (
            f"the field is {name}, which JAX would truncate to {narrow}\n"
            'help: run this before anything else: jax.config.update("jax_enable_x64", True)\n'
            f'help: or ask for 32 bits: dtype="{narrow}"'
        )


class TestLiterals:
    @pytest.mark.parametrize("value", [True, 3, -3, 0.5, float("nan")])
    def test_python_scalars_are_jax(self, value, x64):
        as_jax = jnp.asarray(value)
        assert of_literal(value) == (as_jax.dtype, as_jax.weak_type)

    @pytest.mark.parametrize("name", NAMES)
    def test_numpy_scalars_are_strong(self, name):
        assert of_literal(np.dtype(name).type(1)) == (np.dtype(name), False)

    def test_a_64_bit_numpy_scalar_without_x64(self):
        with (
            jax.enable_x64(False),
            pytest.raises(DtypeError, match=r"the NumPy scalar 0\.5 is float64, which"),
        ):
            of_literal(np.float64(0.5))

    def test_an_integer_that_does_not_fit(self):
        with jax.enable_x64(False):
            of_literal(2**31 - 1)
            with pytest.raises(DtypeError, match="2147483648 does not fit into int32\nhelp: run this before"):
                of_literal(2**31)
        of_literal(-(2**63))
        with pytest.raises(DtypeError, match="does not fit into int64\nhelp: write it as a float"):
            of_literal(2**63)

    @pytest.mark.parametrize("value", [1j, "a", None, np.zeros(3), np.complex64(1), [1.0]], ids=repr)
    def test_anything_else_is_refused(self, value):
        with pytest.raises(DtypeError, match="is not a"):
            of_literal(value)


class TestKinds:
    @pytest.mark.parametrize("name", NAMES)
    def test_are_jax(self, name):
        dtype = np.dtype(name)
        assert is_floating(dtype) == jnp.issubdtype(dtype, jnp.floating)
        assert is_integer(dtype) == jnp.issubdtype(dtype, jnp.integer)
        assert is_bool(dtype) == (name == "bool")

    @pytest.mark.parametrize("name", NAMES)
    def test_limits_are_the_identities_of_max_and_min(self, name):
        dtype = np.dtype(name)
        assert minimum_of(dtype).dtype == maximum_of(dtype).dtype == dtype
        for value in (minimum_of(dtype), dtype.type(0), dtype.type(1), maximum_of(dtype)):
            assert np.maximum(value, minimum_of(dtype)) == np.minimum(value, maximum_of(dtype)) == value
        assert np.isinf(minimum_of(dtype)) == np.isinf(maximum_of(dtype)) == is_floating(dtype)
