"""Fields, and immediate evaluation on NumPy or JAX arrays."""

from fieldjax.embedded.constructors import as_field, empty, full, ones, zeros
from fieldjax.embedded.field import Field

__all__ = ["Field", "as_field", "empty", "full", "ones", "zeros"]
