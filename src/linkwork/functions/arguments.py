"""The arguments of a function: in order, with defaults, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwork import chunked_arrays as interruptible
from linkwork.algorithms.registry import FD, check_modes
from linkwork.checks import Refused, bare_as_entry, check_memory, real_array, shown
from linkwork.errors import InputError, not_found
from linkwork.functions.method_choice import Choice
from linkwork.functions.parameters import impossible
from linkwork.model import Model


class Arguments:
    """A function's named inputs with their sizes; those with a default may be left out.

    Inputs of several axes have a shape in `_shapes`.
    """

    name: str
    model: Model
    method: Any
    choice: str | Choice
    inputs: dict[str, int]
    defaults: dict[str, np.ndarray]
    dtype: str
    factors_mass = False
    """Whether the mass matrix is factorised: inertias as inputs must be those of bodies then."""

    _shapes: dict[str, tuple[int, ...]]

    def _ordered(self, args: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
        """The inputs in order, with defaults where they are left out."""
        names = list(self.inputs)
        if len(args) == len(names) and not named:
            return args
        if len(args) > len(names):
            raise InputError(f"{self.name} takes {len(names)} inputs ({', '.join(names)}), not {len(args)}")
        given = dict(zip(names, args, strict=False))
        for n, x in named.items():
            if n not in self.inputs:
                raise not_found(f"input of {self.name}", n, names)
            if n in given:
                raise InputError(f"{self.name}: input '{n}' is given twice")
            given[n] = x
        given = {**self.defaults, **given}
        missing = [n for n in names if n not in given]
        if missing:
            raise InputError(f"{self.name} needs {', '.join(missing)} too: call it with ({', '.join(names)})")
        return [given[n] for n in names]

    def _take(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[np.ndarray], int | None]:
        """The inputs in order, checked; and the batch size, None for one state."""
        given = self._ordered(args, named)
        arrays = [self._checked(n, x) for n, x in zip(self.inputs, given, strict=True)]
        sizes = {len(x) for x in arrays if x.ndim == 2}
        if len(sizes) > 1:
            raise InputError(f"{self.name}: the inputs have different batch sizes {sorted(sizes)}")
        return arrays, sizes.pop() if sizes else None

    def _checked(self, name: str, value: Any) -> np.ndarray:
        shape = self._shapes.get(name, (self.inputs[name],))
        try:
            x = bare_as_entry(real_array(value, name), shape)
        except Refused as why:
            raise InputError(f"{self.name}: '{name}' is not an array of numbers ({str(why) or shown(value)})") from None
        if x.ndim not in (len(shape), len(shape) + 1) or x.shape[-len(shape) :] != shape:
            one, many = str(shape), f"(batch, {', '.join(map(str, shape))})"
            raise InputError(f"{self.name}: '{name}' has shape {x.shape}; this model needs {one} or {many}")
        check_memory(f"{self.name}: '{name}', {x.shape}", x.size, "give fewer states at a time")
        x = interruptible.typed(x, self.dtype)
        x = x.reshape(*x.shape[: x.ndim - len(shape)], self.inputs[name])
        if not interruptible.all_finite(x):
            raise InputError(f"{self.name}: '{name}' has entries that are NaN or infinite")
        if name in ("q", "q0"):
            self.model.check_position(x)
        if self.factors_mass and (wrong := impossible(self.model, name, x)):
            raise InputError(f"{self.name}: {wrong}")
        if name == "active" and isinstance(self.choice, Choice) and self.choice.task == FD:
            check_modes("forward_dynamics", self.method, self.model, x)
        return x
