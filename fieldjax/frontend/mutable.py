"""Lists, dicts, sets and dataclasses that a branch changes in place, while both branches are recorded.

Each branch works on copies of its own. What the condition selects of them is put into the original, which may
be known under other names too.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from fieldjax.frontend.containers import flatten


def own(x: Any) -> Any:
    """A copy that can be changed, with the same leaves; what can't be changed is itself."""
    if type(x) is list:
        return [own(v) for v in x]
    if type(x) is dict:
        return {k: own(v) for k, v in x.items()}
    if type(x) is set:
        return set(x)
    if _is_mutable_dataclass(x):
        made = copy.copy(x)
        made.__dict__.update({k: own(v) for k, v in vars(x).items()})
        return made
    return x


def refilled(x: Any, new: Any) -> Any:
    """`x` itself, now holding what `new` holds; `new` where `x` can't be changed."""
    if type(x) is not type(new) or x is new:
        return new
    if type(x) is list:
        kept = [refilled(a, b) for a, b in zip(x, new, strict=False)]
        x[:] = [*kept, *new[len(kept) :]]
    elif type(x) is dict:
        kept = {k: refilled(x[k], v) if k in x else v for k, v in new.items()}
        x.clear()
        x.update(kept)
    elif _is_mutable_dataclass(x):
        x.__dict__.update({k: refilled(vars(x).get(k), v) for k, v in vars(new).items()})
    else:
        return new
    return x


def _is_mutable_dataclass(x: Any) -> bool:
    """Whether `x` is a container of data whose attributes can be set."""
    if not dataclasses.is_dataclass(x) or isinstance(x, type) or not hasattr(x, "__dict__"):
        return False
    frozen = type(x).__dataclass_params__.frozen  # type: ignore[attr-defined]
    return not frozen and not any(leaf is x for leaf in flatten(x)[0])
