"""Where the column of a scan begins and ends."""

import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import DomainError
from tests.frontend.scans import COLUMNS, LEVELS, Cell, K, columns, everywhere, field, total


@fj.field_operator
def difference(f):
    result = total(f)
    return result - result(K - 1)


def test_without_a_domain_the_column_is_that_of_the_arguments():
    f = columns()
    got = everywhere(difference, field(f, Cell, K))
    assert got.domain == fj.domain({Cell: COLUMNS, K: (1, LEVELS)})
    np.testing.assert_allclose(got.asnumpy(), f[:, 1:])


@pytest.mark.parametrize("forward", [True, False])
def test_with_a_domain_the_column_begins_and_ends_there(forward):
    operator = fj.scan_operator(lambda carry, f: carry + f, axis=K, init=0.0, forward=forward)
    f = columns()
    got = everywhere(operator, field(f, Cell, K), domain={Cell: (1, 3), K: (2, 5)})
    part = f[1:3, 2:5]
    expected = np.cumsum(part, axis=1) if forward else np.cumsum(part[:, ::-1], axis=1)[:, ::-1]
    np.testing.assert_allclose(got.asnumpy(), expected)
    out = fj.zeros({Cell: COLUMNS, K: LEVELS})
    operator(field(f, Cell, K), out=out[1:3, 2:5])
    np.testing.assert_allclose(out.asnumpy()[1:3, 2:5], expected)
    assert out.asnumpy().sum() == pytest.approx(expected.sum())


@pytest.mark.parametrize("backend", [None, "jax"])
def test_a_reader_at_another_level_does_not_enlarge_the_column(backend):
    with pytest.raises(DomainError, match="K 1\n") as caught:
        difference.with_backend(backend)(field(columns(), Cell, K), domain={Cell: COLUMNS, K: (2, 5)})
    assert "result = total(f)" in str(caught.value)


def test_a_column_of_all_outputs_together():
    @fj.field_operator
    def two(f):
        result = total(f)
        return result, result(K - 1)

    f = columns()
    domains = {Cell: COLUMNS, K: (1, 3)}, {Cell: COLUMNS, K: (2, 5)}
    first, second = everywhere(two, field(f, Cell, K), domain=domains)
    expected = np.cumsum(f[:, 1:], axis=1)
    np.testing.assert_allclose(first.asnumpy(), expected[:, :2])
    np.testing.assert_allclose(second.asnumpy(), expected[:, :3])
