"""What `as_connectivity` accepts, copies, converts and refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fieldjax.connectivity import Connectivity, as_connectivity
from fieldjax.domain import UnitRange, domain
from fieldjax.errors import ConnectivityError, DomainError, DtypeError, TracingError
from tests.connectivity.tables import Cell, E2CDim, Edge, e2c
from tests.refusals import refused

WHOLE = domain({Edge: 2, E2CDim: 2})


@pytest.mark.parametrize(
    "like",
    [
        WHOLE,
        {Edge: 2, E2CDim: 2},
        [(Edge, 2), (E2CDim, (0, 2))],
        [Edge, E2CDim],
        (Edge, E2CDim),
        tuple(WHOLE),
    ],
)
def test_domains(like):
    assert as_connectivity(like, Cell, [[0, 1], [1, 2]]).domain == WHOLE


def test_attributes():
    table = as_connectivity({Edge: (3, 5), E2CDim: 2}, Cell, [[0, 1], [1, -1]], skip_value=-1)
    assert (table.codomain, table.skip_value, table.local_dimension) == (Cell, -1, E2CDim)
    assert (table.shape, table.dtype, table.ndarray is table.table) == ((2, 2), np.int32, True)
    assert isinstance(table.table, jax.Array)
    np.testing.assert_array_equal(table.asnumpy(), [[0, 1], [1, -1]])
    np.testing.assert_array_equal(np.asarray(table), table.asnumpy())
    assert repr(table).startswith("Connectivity(Domain(Edge[3:5), E2C[0:2)) -> Cell, skip_value=-1, Handle(")
    assert as_connectivity([Edge], Cell, [0]).local_dimension is None


@pytest.mark.parametrize(
    "make", [list, np.array, jnp.array, lambda t: np.array(t, np.int8), lambda t: np.array(t).T.copy().T]
)
def test_data(make):
    table = e2c(make([[0, 1], [1, 2]]))
    assert table.handle is e2c([[0, 1], [1, 2]]).handle


def test_a_connectivity_is_data_too():
    assert e2c(e2c([[0, 1]])).handle is e2c([[0, 1]]).handle


def test_masked_entries_are_skips():
    masked = np.ma.masked_equal([[0, 9], [1, 2]], 9)
    assert e2c(masked, 7).asnumpy().tolist() == [[0, 7], [1, 2]]
    assert as_connectivity([Edge, E2CDim], Cell, masked).skip_value == -1


def test_minus_one_is_found_unless_said_otherwise():
    assert as_connectivity([Edge], Cell, [0, -1]).skip_value == -1
    assert as_connectivity([Edge], Cell, [0, 1]).skip_value is None
    assert as_connectivity([Edge], Cell, np.array([0, 1], np.uint8)).skip_value is None
    with pytest.raises(ConnectivityError, match="there is no skip value"):
        as_connectivity([Edge], Cell, [0, -1], skip_value=None)


@pytest.mark.parametrize("skip", [-1, 0, 7, 2, np.int64(-1), np.array(7)])
def test_any_skip_value(skip):
    table = e2c([[0, 1], [2, skip]], skip)
    assert table.skip_value == int(skip)
    assert table.facts(table.domain).has_skips
    assert hash(table.structure) == hash(e2c([[0, 1], [2, skip]], int(skip)).structure)


@pytest.mark.parametrize("make", [np.array, jnp.array])
def test_later_changes_to_the_data_are_not_seen(make):
    data = np.zeros((64, 2), np.int32)
    table = e2c(data if make is np.array else jnp.asarray(data))
    data[:] = 5
    assert not np.asarray(table.table).any()
    assert table.image(table.domain) == UnitRange(0, 1)


def test_a_read_only_view_of_changing_memory():
    data = np.zeros((64, 2), np.int32)
    view = data.view()
    view.flags.writeable = False
    table = e2c(view)
    data[:] = 5
    assert not np.asarray(table.table).any()


def test_the_entries_are_read_only_for_good():
    entries = e2c([[0, 1]]).asnumpy()
    with pytest.raises(ValueError, match="read-only"):
        entries[0, 0] = 5
    with pytest.raises(ValueError, match="WRITEABLE"):
        entries.flags.writeable = True


def test_attributes_cannot_be_assigned():
    table = e2c([[0, 1]])
    for name in ("table", "domain", "skip_value", "anything"):
        with pytest.raises(AttributeError):
            setattr(table, name, None)
    with pytest.raises(TypeError, match="as_connectivity"):
        Connectivity(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([[0, 1]], np.int32),
        (np.array([[0, 1]], np.uint64), np.int32),
        ([[0, 2**31 - 1]], np.int32),
        ([[0, 2**31]], np.int64),
    ],
)
def test_int32_unless_it_does_not_fit(data, dtype):
    table = e2c(data)
    assert table.dtype == table.table.dtype == dtype


def test_a_skip_value_must_fit_too():
    assert e2c([[0, 1]], 2**40).dtype == np.int64
    with pytest.raises(ConnectivityError, match="int8 doesn't hold the indices"):
        e2c([[0, 1]], 200, dtype="int8")


def test_an_asked_dtype():
    assert e2c([[0, 1]], dtype="uint16").table.dtype == np.uint16
    with pytest.raises(ConnectivityError, match="holds integers, not float32"):
        e2c([[0, 1]], dtype="float32")


def test_int64_needs_x64(run_python):
    run_python(
        """
import numpy as np, pytest, jax.numpy as jnp
from fieldjax.connectivity import as_connectivity
from fieldjax.domain import Dimension
from fieldjax.errors import DtypeError
Cell, Edge = Dimension("Cell"), Dimension("Edge")
with pytest.raises(DtypeError, match="jax_enable_x64") as caught:
    as_connectivity([Edge], Cell, [2**31])
assert "neighbour table with entries and skip values from 0 to 2147483648" in str(caught.value)
with pytest.raises(DtypeError):
    as_connectivity([Edge], Cell, [0], dtype="int64")
assert as_connectivity([Edge], Cell, np.array([3])).table.dtype == jnp.int32
""",
        x64=False,
    )


@pytest.mark.parametrize(
    ("data", "skip", "message"),
    [
        ([[0.0, 1.0], [1.0, 2.0]], None, "a neighbour table holds integers, got float64"),
        ([[0, np.nan], [1, 2]], None, "some entries are NaN"),
        ([[True, False], [True, True]], None, "holds integers, got bool"),
        ([["a", "b"], ["c", "d"]], None, "holds integers"),
        ([0, 1], None, r"has shape \(2,\), its domain \(2, 2\)"),
        ([[0, 1], [1, -5]], -1, r"Edge 1 leads to Cell 1, -5\n.*the skip value is -1\n.*skip_value=-5"),
        (
            [[0, 1], [1, -1]],
            None,
            r"negative entries\n.*Edge 1 leads to Cell 1, -1\n.*there is no skip value",
        ),
        ([[0, 1], [1, 2]], 1.5, "a skip value is an integer or None, got 1.5"),
        ([[0, 1], [1, 2]], True, "a skip value is an integer"),
        ([[0, 1], [1, 2]], np.int32, "the dtype of a table is given as dtype="),
    ],
)
def test_what_is_refused(data, skip, message):
    with refused(message, ConnectivityError):
        as_connectivity(WHOLE, Cell, data, skip_value=skip)


def test_negative_rows_are_named_where_the_domain_puts_them():
    with pytest.raises(ConnectivityError, match="Edge 11 leads to Cell -3"):
        as_connectivity({Edge: (10, 12)}, Cell, [0, -3], skip_value=None)


@pytest.mark.parametrize(
    ("like", "data", "message"),
    [
        ([Edge], [[0, 1]], r"1 dimensions don't match a table of shape \(1, 2\)"),
        ({}, 3, "at least one dimension"),
        ({Edge: (0, None)}, [0, 1], "must be finite"),
    ],
)
def test_domains_that_are_refused(like, data, message):
    with refused(message, ConnectivityError):
        as_connectivity(like, Cell, data)
    with pytest.raises(DomainError):
        as_connectivity(3, Cell, data)  # type: ignore[arg-type]


def test_the_codomain_must_be_a_dimension():
    with pytest.raises(ConnectivityError, match="is a Dimension, got 'Cell'"):
        as_connectivity([Edge], "Cell", [0])  # type: ignore[arg-type]


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: [[t[0, 0], 1]], lambda t: t + 1])
def test_traced_data(wrap):
    with pytest.raises(TracingError, match="built from a traced array"):
        jax.jit(lambda t: e2c(wrap(t)).table)(jnp.array([[0, 1]]))
    with pytest.raises(TracingError, match="built from a traced array"):
        jax.vmap(lambda t: e2c(wrap(t)).table)(jnp.array([[[0, 1]]]))


def test_concrete_data_inside_a_trace():
    made = []

    @jax.jit
    def build(x):
        made.append(e2c([[0, 1]]).with_adjoint())
        return x[made[0].table]

    assert build(jnp.array([5, 6])).tolist() == [[5, 6]]
    assert made[0].table.tolist() == [[0, 1]]
    assert made[0].handle is e2c([[0, 1]]).handle


def test_devices():
    device = jax.devices()[1]
    for table in (
        e2c([[0, 1]], device=device),
        e2c([[0, 1]], allocator=device),
        e2c(jax.device_put(jnp.array([[0, 1]]), device)),
    ):
        assert table.table.devices() == {device}
        adjoint = table.with_adjoint().adjoint
        assert adjoint is not None
        assert adjoint.rows.devices() == {device}
    assert e2c([[0, 1]], allocator=np).table.devices() == {jax.devices()[0]}


def test_an_empty_table():
    table = e2c(np.zeros((0, 2), np.int32)).with_adjoint()
    assert table.image(table.domain).is_empty()
    assert table.in_degree == 0
    assert as_connectivity([Edge], Cell, []).dtype == np.int32


def test_wrong_dtypes_are_dtype_errors():
    with pytest.raises(DtypeError):
        e2c([[0, 1]], dtype="complex64")
