"""`Variable`: a value of a recorded model, with the arithmetic of fields and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from fieldjax.domain import Dimension, Domain
from fieldjax.dtypes import as_dtype, require_x64
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar
from fieldjax.errors import TracingError, user_location
from fieldjax.frontend.handing_over import Handing, recorder_of
from fieldjax.ir.arithmetic import Arithmetic
from fieldjax.ir.graph import Value
from fieldjax.ir.operations.pointwise import Cast
from fieldjax.model.axes import is_array

if TYPE_CHECKING:
    from fieldjax.model.recorder import Recording


class Variable(Handing, Arithmetic):
    """A field, array or scalar of a recorded model.

    Arithmetic, the functions of fieldjax, operators and programs that meet it are recorded.
    """

    __slots__ = ("__weakref__", "home", "unsettled")
    __array_priority__ = 1000

    def __init__(self, value: Value, recording: Recording) -> None:
        self.unsettled = value
        self.home = recording
        """The recording that its value is in."""

    @property
    def value(self) -> Value:
        """What it stands for in the graph now: `out=` gives it another, and `compress` moves it."""
        self.home.settle()
        return self.unsettled

    @value.setter
    def value(self, value: Value) -> None:
        self.unsettled = value

    @property
    def recorder(self) -> Recording:
        """Where what is done with it is recorded: the body of a loop while that is recorded.

        Raises TracingError for a variable of a body that has ended.
        """
        return self.home.innermost

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The dimensions; those of a plain array count its axes."""
        return self.value.dims

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.value.field_type.dtype

    @property
    def domain(self) -> Domain:
        """Where it lives."""
        return self.home.domain(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of positions along each dimension."""
        return self.domain.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def name(self) -> str | None:
        """The name of an input or output of the model."""
        return self.home.name_of(self.value)

    @property
    def data(self) -> Any:
        """The value itself where the model evaluates while it records (`record(inline=True)`).

        Raises TracingError where it doesn't.
        """
        return self.recorder.result(self.value)

    def asnumpy(self) -> Any:
        """The data as a NumPy array, as `data`."""
        import numpy as np

        found = self.data
        return found.asnumpy() if isinstance(found, Field) else np.asarray(found)

    def _combine(self, function: str, *operands: Any) -> Any:
        known = all(isinstance(x, (Variable, Field)) or is_scalar(x) or hasattr(x, "shape") for x in operands)
        recorder = recorder_of(operands)
        return recorder.pointwise(function, *operands) if known and recorder is not None else NotImplemented

    def astype(self, dtype: Any) -> Variable:
        """The same elements in another dtype. Raises DtypeError for 64 bits while x64 is off."""
        dtype = as_dtype(dtype)
        require_x64(dtype, "the dtype asked for")
        return self.recorder.apply(Cast(dtype), self)

    def __getitem__(self, index: Any) -> Variable:
        """A part: of an array as in NumPy (integers, slices), of a field as `Field` is cut."""
        from fieldjax.model.cutting import cut

        return cut(self, index)

    def __matmul__(self, other: Any) -> Variable:
        """The matrix product of plain arrays of one or two axes."""
        from fieldjax.model.products import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Variable:
        from fieldjax.model.products import matmul

        return matmul(self.recorder.variable(other), self)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._no_elements("an array")

    def __bool__(self) -> NoReturn:
        self._no_elements("a truth value")

    def __float__(self) -> NoReturn:
        self._no_elements("a number")

    def __int__(self) -> NoReturn:
        self._no_elements("a number")

    __index__ = __int__

    def __iter__(self) -> NoReturn:
        self._no_elements("elements to iterate over")

    def _no_elements(self, wanted: str) -> NoReturn:
        raise TracingError(
            f"a recorded value isn't {wanted} yet",
            location=user_location(),
            hints=["use the functions of fieldjax (`fieldjax.where`, `fieldjax.sum`, ...); `model.compile()` runs it"],
        )

    def __repr__(self) -> str:
        what = f"{self.dtype}{list(self.shape)}" if is_array(self.dims) or not self.dims else f"{self.domain!r}"
        return f"Variable({self.name or self.value.node.operation}: {what})"


def variables(x: Any) -> Sequence[Variable]:
    """The variables in a container."""
    from fieldjax.frontend.containers import flatten

    return [leaf for leaf in flatten(x)[0] if isinstance(leaf, Variable)]
