"""A method: one algorithm with its traits, by which factories, planner and documentation treat it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkwork.algorithms.common.iteration import Prox
from linkwork.structure.constraint_treatment import BASE, LOOPS, NOTHING, Ways, treated
from linkwork.structure.local_loops import local_loops

if TYPE_CHECKING:
    from linkwork.model import Model

FD, DELASSUS = "forward_dynamics", "delassus"
TAKES = {
    "none": "no constraints",
    "link": "contacts",
    "any": "contacts, loops, couplings",
    "loops": "local loops, couplings",
    "clusters": "contacts, local loops, couplings",
}
"""The constraints that a method takes, in words."""


@dataclass(frozen=True)
class Method:
    """One algorithm and its traits. `function` is "module:name" below linkwork.algorithms.

    - `rows`: which constraints it takes: "none"; "link", rows over one moving link each (contacts); "any", rows over
      several links and joints (closed loops, couplings, centre of mass); "loops", local loops and couplings only;
      "clusters", these and contacts.
    - `ways`: which of them it embeds, penalises and propagates (structure/constraint_treatment.py); None if it solves
      for all of them at once, in joint space.
    - `redundant`: rows may depend on each other and postures may be singular; otherwise rows must be independent.
    - `soft`: takes a softness R per row. `modes`: constraints can be switched at run time.
    - `prox`: the default of a method that iterates, and `iterations` how many solver iterations it usually takes with
      that. `single`: its default in float32, if that is not `prox.single`.
    - `damps`: where its proximal term acts: on "all" rows, or only on those that no joint moves ("singular").
    - `direct`: the method without the proximal term, which takes fewer operations for independent rows.
    - `operator`: it solves and multiplies, and never forms the matrix.
    - `reference`: a reference implementation, which the planner does not take.
    - `least_squares`: it solves rows of any rank by dense least squares, which needs all digits of float64.
    """

    name: str
    task: str
    function: str
    summary: str
    source: str
    cost: str
    rows: str = "none"
    ways: Ways | None = None
    redundant: bool = False
    soft: bool = False
    modes: bool = False
    prox: Prox | None = None
    iterations: float = 1.0
    single: Prox | None = None
    damps: str = "all"
    direct: str = ""
    operator: bool = False
    reference: bool = False
    least_squares: bool = False

    @property
    def local(self) -> bool:
        """Whether it embeds linkages: they must not be singular for the joints chosen as independent."""
        return self.ways is not None and self.ways.embeds == LOOPS

    @property
    def at_once(self) -> bool:
        """Whether it iterates on all rows at once: a further iteration is two triangular solves, and no sweep."""
        return self.prox is not None and (self.ways is None or self.ways == Ways(propagates=BASE))

    @property
    def outer_only(self) -> bool:
        """Whether it returns only the rows outside clusters."""
        return self.task == DELASSUS and self.local

    @property
    def treatment(self) -> str:
        """What it does with constraints, in a few words."""
        w, said = self.ways, list[str]()
        if w is None:
            return "joint space"
        if w.embeds != NOTHING:
            said.append(f"embeds {'local loops' if w.embeds == LOOPS else w.embeds}")
        if w.penalises:
            said.append("penalises")
        if w.propagates:
            said.append(f"propagates to {w.propagates}")
        return ", ".join(said) + (" (whichever is less work)" if w.chooses else "")

    def facts(self) -> dict[str, str]:
        """The method in words, by column: for tables of all methods."""
        solves = self.rows != "none" and self.task == FD
        return {
            "task": self.task.replace("_", " "),
            "method": self.name,
            "what it does": self.summary + (" (reference implementation)" if self.reference else ""),
            "source": self.source,
            "cost": self.cost,
            "takes": TAKES[self.rows],
            "treatment of constraints": self.treatment if self.ways or solves or self.task == DELASSUS else "",
            "redundant rows": ("yes" if self.redundant else "no") if solves else "",
            "run-time modes": ("yes" if self.modes else "no") if solves else "",
        }

    def load(self) -> Callable[..., Any]:
        module, name = self.function.split(":")
        return getattr(import_module(f"linkwork.algorithms.{module}"), name)  # type: ignore[no-any-return]

    def prox_for(self, dtype: str) -> Prox | None:
        """The default of a method that iterates, for numbers of this precision."""
        if self.prox is None or dtype != "float32":
            return self.prox
        return self.single or self.prox.single

    def locked(self, model: Model) -> tuple[int, ...]:
        """The constraints that `modes` cannot switch: those that clusters embed."""
        if not self.modes or self.ways is None or self.ways.switched().embeds == NOTHING:
            return ()
        return tuple(sorted(treated(model, self.ways.switched()).embedded))

    def refusal(self, model: Model, soft: bool = False, modes: bool = False) -> str | None:
        """Why this method cannot handle the model, or None if it can."""
        if model.constraints and self.rows == "none":
            return f"it ignores constraints, and '{model.name}' has {len(model.constraints)}"
        if self.rows == "link":
            for c in model.constraints:
                if sum(l > 0 for l in c.touches(model)) > 1:
                    return f"constraint '{c.name}' ties several moving links together, and it takes rows over one each"
        if self.rows in ("loops", "clusters"):
            local = {n for _, constraints in local_loops(model) for n in constraints}
            for n, c in enumerate(model.constraints):
                ties = sum(l > 0 for l in c.touches(model))
                if n not in local and (self.rows == "loops" or ties > 1):
                    return f"constraint '{c.name}' is neither a coupling nor a local loop"
        if soft and not self.soft:
            return "it has no soft rows, and a softness R is given"
        if self.soft and not soft:
            return "its rows are soft, and no softness R is given"
        if modes and not self.modes:
            return "it cannot switch constraints at run time"
        return None
