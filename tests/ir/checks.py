"""Comparing fields with the naive reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.strategies import Case


def assert_means(field: Any, case: Case) -> None:
    """`field` has the domain, the dtype, and (up to rounding) the specified elements of what the case means.

    What is unspecified is finite all the same where everything else is; nothing specified is reported missing.
    """
    expected = case.expected
    assert field.domain == expected.domain
    assert field.dtype == expected.dtype
    specified, values, found = expected.specified(), expected.values(), field.asnumpy()
    assert_close(found[specified], values[specified], case)
    if found.dtype.kind == "f" and case.is_finite and specified.any():
        assert np.isfinite(found).all()
    missing = np.ma.getmaskarray(field.asnumpy(masked=True))
    assert not (missing & specified).any()


def assert_close(found: Any, expected: Any, case: Case) -> None:
    """Equal up to the rounding of the case's dtypes."""
    rounding = tolerance(*(p.dtype for p in case.expression.parts()))
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)


def tolerance(*dtypes: Any) -> float:
    """A few roundings of the narrowest of these dtypes."""
    eps = [float(np.finfo(d).eps) for d in map(np.dtype, dtypes) if d.kind == "f"]
    return 200 * max(eps, default=0.0)
