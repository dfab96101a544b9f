"""What people write: operators, the functions of the language, and the jit that knows meshes."""

from fieldjax.frontend.jit import Jitted, jit
from fieldjax.frontend.operator import FieldOperator, field_operator

__all__ = ["FieldOperator", "Jitted", "field_operator", "jit"]
