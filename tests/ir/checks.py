"""Comparing fields with the naive reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.strategies import Naive


def assert_means(field: Any, expected: Naive, rounding: float = 1e-12) -> None:
    """`field` has the domain, the dtype, and (up to rounding) the specified elements of `expected`.

    What is unspecified is finite all the same where all that is specified is, and is reported as missing.
    """
    assert field.domain == expected.domain
    assert field.dtype == expected.dtype
    specified, values, found = expected.specified(), expected.values(), field.asnumpy()
    np.testing.assert_allclose(found[specified], values[specified], rtol=rounding, atol=rounding)
    if found.dtype.kind == "f" and np.isfinite(values).all() and specified.any():
        assert np.isfinite(found).all()
    missing = np.ma.getmaskarray(field.asnumpy(masked=True))
    assert not (missing & specified).any()


def tolerance(*dtypes: Any) -> float:
    """A few roundings of the narrowest of these dtypes."""
    eps = [float(np.finfo(d).eps) for d in map(np.dtype, dtypes) if d.kind == "f"]
    return 200 * max(eps, default=0.0)
