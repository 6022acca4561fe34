"""Every method there is: what it computes, where it comes from, what it costs and what it can handle.

This table drives the factories, their error messages, the command line, the documentation and the test grid: adding a
method means one file and one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkwork.errors import UnsupportedError, listing, not_found

if TYPE_CHECKING:
    from linkwork.model import Model


@dataclass(frozen=True)
class Method:
    """One algorithm. `function` is "module:name" below linkwork.algorithms."""

    name: str
    task: str
    function: str
    summary: str
    source: str
    cost: str
    constraints: bool = False

    def load(self) -> Callable[..., Any]:
        module, name = self.function.split(":")
        return getattr(import_module(f"linkwork.algorithms.{module}"), name)  # type: ignore[no-any-return]

    def refusal(self, model: Model) -> str | None:
        """Why this method cannot handle the model, or None if it can."""
        if model.constraints and not self.constraints:
            return f"it ignores constraints, and '{model.name}' has {len(model.constraints)}"
        return None


FEATHERSTONE = "Featherstone 2008"

METHODS: tuple[Method, ...] = (
    Method("rnea", "inverse_dynamics", "tree.rnea:rnea", "recursive Newton-Euler", FEATHERSTONE, "O(n)"),
    Method("aba", "forward_dynamics", "tree.aba:aba", "articulated bodies", FEATHERSTONE, "O(n)"),
    Method("crba_ltl", "forward_dynamics", "tree.ltl:crba_ltl", "sparse factor of the mass matrix", "Featherstone 2005",
           "O(n d^2)"),
    Method("kkt", "forward_dynamics", "constrained.kkt:kkt", "dense, by singular values: the reference", "",
           "O((n+m)^3)", constraints=True),
)


def methods(task: str) -> dict[str, Method]:
    """The methods for a task, by name."""
    return {m.name: m for m in METHODS if m.task == task}


def pick(task: str, name: str | None, model: Model) -> Method:
    """The method called `name`, or the first that can handle the model; a typed error says which can."""
    known = methods(task)
    able = [m for m in known.values() if m.refusal(model) is None]
    if name is None and able:
        return able[0]
    if name is None:
        why = "; ".join(f"'{m.name}': {m.refusal(model)}" for m in known.values())
        raise UnsupportedError(f"no {task.replace('_', ' ')} method can handle this model. {why}")
    if name not in known:
        raise not_found(f"{task.replace('_', ' ')} method", name, known)
    refusal = known[name].refusal(model)
    if refusal is not None:
        valid = listing(m.name for m in able)
        raise UnsupportedError(f"method '{name}' cannot handle this model: {refusal}. Methods that can: {valid}")
    return known[name]
