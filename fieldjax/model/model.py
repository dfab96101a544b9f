"""`record`: a model as a graph of operators, programs, loops and array arithmetic, to differentiate and compress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fieldjax.connectivity import Mesh, is_table
from fieldjax.errors import ArgumentError, DomainError, user_location
from fieldjax.frontend.handing_over import Handing
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import is_endless
from fieldjax.ir.simplify import simplify
from fieldjax.model.recorder import Recording, with_strong_dtype
from fieldjax.model.report import Report, report
from fieldjax.model.results import result_of
from fieldjax.model.stepwise import evaluate
from fieldjax.model.variable import Variable


class Model(Recording):
    """A recorded graph with named inputs and outputs.

    Nothing is recorded because a model is open: an operation is recorded where it meets a variable, and
    everything else is computed at once.
    """

    def __init__(self, inline: bool = False) -> None:
        super().__init__()
        self.inline = inline
        self.inputs: dict[str, Value] = {}
        self._outputs: dict[str, Value] = {}
        self._results: dict[Value, Any] = {}
        self._compiled: tuple[Any, Any] | None = None

    @property
    def outputs(self) -> dict[str, Value]:
        """The outputs by name."""
        self.settle()
        return self._outputs

    def input(self, name: str, data: Any) -> Any:
        """An input: a field, an array, a scalar, a connectivity or a mesh. `data` is its default.

        Returns a variable; for a mesh something that serves as `offset_provider`. Raises ArgumentError for a name
        that is taken, and for what isn't data.
        """
        self._check_new(name, self.inputs, "input")
        if isinstance(data, Mesh):
            return RecordedMesh(self, name, data)
        if isinstance(data, Variable):
            raise ArgumentError("an input takes data, not a recorded value", location=user_location())
        value = self.new_parameter(name, data if is_table(data) else _as_data(data))
        self.inputs[name] = value
        if is_table(data):
            self.stands_for(data, value)
            return data
        return self.variable_of(value)

    def parameter(self, data: Any) -> Variable:
        """A value that the model reads when it runs, without a name: it can be differentiated, not replaced."""
        recording = self.innermost
        return recording.variable_of(recording.value(_as_data(data)))

    def constant(self, x: Any) -> Variable:
        """A scalar that is compiled in. Raises ArgumentError for anything else."""
        from fieldjax.embedded.leaves import is_scalar

        if not is_scalar(x):
            raise ArgumentError(f"a constant is a scalar, not {type(x).__name__}", location=user_location())
        import numpy as np

        recording = self.innermost
        return recording.variable_of(recording.value(np.asarray(x)[()] if hasattr(x, "shape") else x))

    def output(self, name: str, value: Any) -> None:
        """Registers an output.

        Raises ArgumentError for a name that is taken, DomainError for a value that extends without end.
        """
        self._check_new(name, self.outputs, "output")
        found = self.value(value)
        if is_endless(self.places[found]):
            raise DomainError(
                f"the output {name!r} extends without end: {self.places[found]}",
                location=user_location(),
                hints=["let it meet a field that has an end"],
            )
        self._outputs[name] = found

    def _check_new(self, name: str, names: Mapping[str, Value], what: str) -> None:
        if self.innermost is not self:
            raise ArgumentError(
                f"{name!r} can't become an {what} in the body of a loop, which runs once",
                location=user_location(),
                hints=[f"name {what}s before or after the loop"],
            )
        if name in names:
            raise ArgumentError(
                f"the model has an {what} {name!r} already",
                location=user_location(),
                notes=[f"its {what}s are {', '.join(names)}"],
            )

    def name_of(self, value: Value) -> str | None:
        """The name of an input or an output."""
        named = {v: n for n, v in (*self._outputs.items(), *self.inputs.items())}
        return named.get(value)

    def loop(self, body: Any, init: Any = (), length: int | None = None, **options: Any) -> Any:
        """`fieldjax.loop` in this model, also where no explicit carry is a value of the model."""
        from fieldjax.model.loops import loop

        return loop(body, init, length, recorder=self, **options)

    def kept(self) -> frozenset[Value]:
        """The outputs."""
        return frozenset(self._outputs.values())

    def on_replaced(self, new: Mapping[Value, Value]) -> None:
        """Variables, outputs and results follow their values."""
        super().on_replaced(new)
        self._outputs = {name: new.get(v, v) for name, v in self._outputs.items()}
        if self._results:
            results = {new.get(v, v): x for v, x in self._results.items()}
            self._results = {v: x for v, x in results.items() if v in self.places}

    @property
    def graph(self) -> Graph:
        """The graph from the parameters to the outputs: inputs first, in the order of their names' registration."""
        inputs = dict.fromkeys((*self.inputs.values(), *self.data))
        return simplify(Graph(tuple(inputs), tuple(self.outputs.values())))

    def on_new(self, node: Node) -> None:
        """Evaluates a new node where the model evaluates while it records."""
        if self.inline:
            evaluate(node, self.places, self._results, self.data)

    def result(self, value: Value) -> Any:
        """The data of a value, as a field or array, where the model evaluates while it records."""
        if value in self.data:
            return self.data[value]
        if value not in self._results:
            return super().result(value)
        return result_of(value, self.domain(value), self._results[value], self.places)

    def compile(self) -> Any:
        """A function that runs the model: `run()`, or `run(name=data)` with other inputs, gives the outputs by name.

        The same one as long as nothing is recorded, compressed or registered.
        """
        from fieldjax.model.running import CompiledModel

        state = self.state, tuple(self.outputs)
        if self._compiled is None or self._compiled[0] != state:
            self._compiled = state, CompiledModel(self)
        return self._compiled[1]

    def run(self, backend: str | None = "jax", **inputs: Any) -> dict[str, Any]:
        """Runs the model once. `backend=None` goes operation by operation and compiles nothing but regions."""
        from fieldjax.model.running import run_stepwise

        return self.compile()(**inputs) if backend is not None else run_stepwise(self, inputs)

    @property
    def compressed_operations(self) -> tuple[Any, ...]:
        """The regions of the model, in the order in which they were made."""
        return tuple(self.regions)

    def report(self) -> Report:
        """What was compiled for the model's regions, how often, how long it took, and how much is shared."""
        return report(self.graph)

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        names = f"inputs: {', '.join(self.inputs) or 'none'}; outputs: {', '.join(self.outputs) or 'none'}"
        return f"Model({len(self.nodes)} nodes; {names})"


class RecordedMesh(Handing, Mapping[str, Any]):
    """A mesh that is an input of a model: an `offset_provider` for the operators that the model calls."""

    def __init__(self, model: Model, name: str, mesh: Mesh) -> None:
        self.mesh, self._model, self.name = mesh, model, name
        for key, table in mesh.items():
            if is_table(table):
                value = model.new_parameter(f"{name}.{key}", table)
                model.inputs[f"{name}.{key}"] = value
                model.stands_for(table, value)

    @property
    def recorder(self) -> Recording:
        """The model, or the body of a loop that is being recorded in it."""
        return self._model.innermost

    def __getitem__(self, name: str) -> Any:
        return self.mesh[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.mesh)

    def __len__(self) -> int:
        return len(self.mesh)


@contextmanager
def record(inline: bool = False) -> Iterator[Model]:
    """A new model to record into.

    `inline=True` also evaluates every operation as it is recorded, so that `variable.data` can be looked at.

    >>> import fieldjax as fj
    >>> with fj.record() as model:
    ...     x = model.input("x", 2.0)
    ...     model.output("y", x * x + 1)
    >>> run = model.compile()
    >>> float(run()["y"]), float(run(x=3.0)["y"])
    (5.0, 10.0)
    """
    yield Model(inline)


def _as_data(x: Any) -> Any:
    """A field or an array as it is; a number as an array, of JAX's default dtype."""
    if hasattr(x, "shape"):
        return with_strong_dtype(x)
    import numpy as np

    from fieldjax.dtypes import of_literal
    from fieldjax.embedded.leaves import is_scalar

    if not is_scalar(x):
        raise ArgumentError(
            f"{x!r} isn't a field, an array, a scalar, a connectivity or a mesh", location=user_location()
        )
    return np.asarray(x, of_literal(x)[0])
