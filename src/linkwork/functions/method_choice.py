"""The method of a function: named by the user, or chosen by the planner when it is first needed."""

from __future__ import annotations

from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Prox
from linkwork.errors import InputError
from linkwork.functions.planning import TASKS, cached_plan, plan
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.planner.plan import Plan
from linkwork.planner.rules import Asked, reasons
from linkwork.progress_line import waiting


class Choice:
    """A method for a task and a model, planned when `method` is first needed.

    A method that cannot handle the model is refused at once. `use`, `independent`, `soft`, `modes` and `measure` are
    those of `plan`. With `prox` it is a method that iterates.
    """

    def __init__(
        self,
        task: str,
        named: str | None,
        model: Model,
        *,
        use: str = "state",
        independent: bool = False,
        soft: bool = False,
        modes: bool = False,
        measure: bool = False,
        prox: Prox | None = None,
    ) -> None:
        self.task, self.named, self.model, self.use, self.measure = task, named, model, use, measure
        self.independent, self.soft, self.modes, self.prox = independent, soft, modes, prox
        if soft and prox is not None:
            raise InputError("soft rows are solved without iterations: leave prox out, or R")
        if named is not None:
            self.settle(registry.named(task, named, model, soft=soft, modes=modes).name)
            if prox is not None and self.method.prox is None:
                raise InputError(f"method '{named}' does not iterate: leave prox out")
            return
        registry.able(task, model, soft=soft, modes=modes)
        if prox is not None and not model.constraints:
            raise InputError("without constraints forward dynamics does not iterate: leave prox out")

    @cached_property
    def method(self) -> registry.Method:
        """The entry of the registry."""
        asked, known = Asked(self.model, self.independent, self.soft, self.modes), registry.methods(self.task)
        planned = self.task in TASKS and (self.measure or cached_plan(self.task, self.use, asked) is not None)
        if not planned:
            suitable = [m for m, reason in reasons(self.task, asked) if not reason]
            if len(suitable) == 1 or self.task not in TASKS:
                return suitable[0]
        possible = [known[c.method] for c in self.plan.candidates if c.possible]
        iterating = [m for m in possible if m.prox is not None] if self.prox is not None else possible
        return (iterating or possible)[0]

    @cached_property
    def plan(self) -> Plan:
        """The methods by predicted time."""
        if self.task not in TASKS:
            raise InputError(f"there is one method for {self.task.replace('_', ' ')}, and nothing to plan")
        with waiting(f"planning {self.task.replace('_', ' ')} of '{self.model.name}'"):
            return plan(
                self.model,
                self.task,
                use=self.use,
                independent=self.independent,
                soft=self.soft,
                modes=self.modes,
                measure=self.measure,
            )

    def settle(self, name: str) -> None:
        """Set the method: it was planned before, or needs no plan."""
        self.__dict__["method"] = registry.methods(self.task)[name]

    @property
    def settled(self) -> str | None:
        """The name of the method, if it has been chosen already."""
        return self.method.name if "method" in self.__dict__ else None
