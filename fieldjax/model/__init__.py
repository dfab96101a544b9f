"""Recorded models: graphs of operators and arrays, with derivatives that are graphs too."""

from fieldjax.model.custom import CustomOperation, custom_operation
from fieldjax.model.derivatives import derivative, hessian, jvp, vjp
from fieldjax.model.implicit import implicit
from fieldjax.model.loops import loop
from fieldjax.model.model import Model, record
from fieldjax.model.reductions import sum
from fieldjax.model.variable import Variable

__all__ = [
    "CustomOperation",
    "Model",
    "Variable",
    "custom_operation",
    "derivative",
    "hessian",
    "implicit",
    "jvp",
    "loop",
    "record",
    "sum",
    "vjp",
]
