"""What people write: operators, the functions of the language, and the jit that knows meshes."""

from fieldjax.frontend.operator import FieldOperator, field_operator

__all__ = ["FieldOperator", "field_operator"]
