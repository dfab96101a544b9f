"""What people write: operators, the functions of the language, and the jit that knows meshes."""

from fieldjax.frontend.jit import Jitted, jit
from fieldjax.frontend.lowering import Lowered
from fieldjax.frontend.operator import FieldOperator, field_operator
from fieldjax.frontend.program import FieldProgram, program
from fieldjax.frontend.scan import ScanOperator, scan_operator

__all__ = [
    "FieldOperator",
    "FieldProgram",
    "Jitted",
    "Lowered",
    "ScanOperator",
    "field_operator",
    "jit",
    "program",
    "scan_operator",
]
