"""A materialisation barrier: what is behind it is computed once, whoever reads it.

XLA:CPU inlines producers into the gathers that read them, and computes them again for every neighbour. It fuses
nothing across a call, and a call that is marked `inlineable = "false"` stays one. So the barrier is a call of the
identity: plain XLA, whose result is its operand's own buffer (docs/decisions/barriers.md).
"""

from __future__ import annotations

from typing import Any

from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import ad, batching, mlir


def materialise(array: Any) -> Any:
    """The array itself, of any shape, computed once where XLA:CPU would compute it for every reader.

    Linear, its own derivative and its own transpose. On other platforms it leaves no trace.
    """
    return _materialise.bind(array)


def _transpose(cotangent: Any, operand: Any) -> tuple[Any]:
    return (cotangent if type(cotangent) is ad.Zero else materialise(cotangent),)


def _lower(context: mlir.LoweringRuleContext, operand: Any) -> list[Any]:
    call = func.CallOp([operand.type], _identity_on(operand.type, context.module_context), [operand])
    call.operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get({"inlineable": ir.StringAttr.get("false")})
    return [call.result]


def _identity_on(type_: Any, module: mlir.ModuleContext) -> Any:
    """Adds a function to the module that returns its argument; the reference to it."""
    with ir.InsertionPoint.at_block_begin(module.module.body):
        identity = func.FuncOp("materialise", ir.FunctionType.get([type_], [type_]), visibility="private")
    module.symbol_table.insert(identity)
    with ir.InsertionPoint(identity.add_entry_block()):
        func.ReturnOp(identity.arguments)
    return ir.FlatSymbolRefAttr.get(identity.name.value)


_materialise = Primitive("materialise")
_materialise.def_impl(lambda array: array)
_materialise.def_abstract_eval(lambda array: array)
ad.deflinear2(_materialise, _transpose)
batching.defvectorized(_materialise)
mlir.register_lowering(_materialise, lambda context, operand: [operand])
mlir.register_lowering(_materialise, _lower, platform="cpu")
