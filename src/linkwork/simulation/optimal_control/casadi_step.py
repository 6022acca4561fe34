"""Discrete steps for CasADi as machine code: `step.casadi_external()`.

A step is its dynamics and its integrator, each an external function (functions/export/casadi_external.py); its
Jacobians are one more, by the entries of q: with dq/dt = R(q) v and P the pseudoinverse of R,

    dx+/dx = [R(q+) 0; 0 1] A [P 0; 0 1],    dx+/du = [R(q+) 0; 0 1] B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwork.backends import Array, Ops
from linkwork.errors import UnsupportedError
from linkwork.functions.differentiation.differentiated import Differentiated
from linkwork.functions.differentiation.jacobians import Jacobians
from linkwork.functions.export.casadi_external import (
    casadi_external,
    inputs_of,
    jacobians_of,
    load,
    normalised,
    to_tangent,
    with_jacobian,
)
from linkwork.kernels.calls.casadi_abi import argument
from linkwork.kernels.programs.matrices import Tracer
from linkwork.kernels.programs.program import Port
from linkwork.model import Model
from linkwork.simulation.optimal_control.step_gradients import stiff_inputs

if TYPE_CHECKING:
    from linkwork.simulation.optimal_control.discrete_step import DiscreteStep


class EntryStep(Jacobians):
    """(q, v, u) -> the derivatives of the next q, the next v and the constraint forces, by entries."""

    _goes_on = True

    def __init__(self, of: DiscreteStep) -> None:
        Differentiated.__init__(self, "entry_step", of.dynamics, of.wrt, {})
        self._stepped, self._dt = of.stepped, of.dt
        if self._identity is not None:
            self._identity = (*self._identity, of.stepped, of.dt)

    def _guard(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        return super()._guard(xp, {**inputs, "q": normalised(self.model, inputs["q"], xp)[0]})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        from linkwork.simulation.optimal_control.linearised import linearised

        assert isinstance(xp, Tracer)
        q, P = to_tangent(self.model, inputs["q"], xp)
        given = stiff_inputs(self._stepped, self._dt, xp, {**inputs, "q": q})
        r, n = super()._traced(xp, dict(given), symbol), self.model.nv
        slopes = xp.hstack([r[f"da_d{w}"] for w in self.wrt])
        x = linearised(self._stepped, self._dt, xp, {**inputs, "q": q, "a": r["a"]}, slopes)
        R = rates(self.model, x["q_next"], xp)
        by = {"q": (x["A"][:, :n], P), "v": (x["A"][:, n:], None), "u": (x["B"], None)}
        found = dict[str, Array]()
        for (w, (D, last)), known in zip(by.items(), self.wrt, strict=True):
            blocks = {"q_next": R @ D[:n, :], "v_next": D[n:, :], "lam": r[f"dlam_d{known}"]}
            found |= {f"d{y}_d{w}": block if last is None else block @ last for y, block in blocks.items()}
        self._shapes.update({name: y.shape for name, y in found.items()})
        return found


def rates(model: Model, q: Array, xp: Ops) -> Array:
    """R: dq/dt = R v."""
    t, columns = model.topology, [xp.zeros(model.nq, 0)]
    for i in t.links:
        joint, at = model.links[i].joint, t.q_slices[i]
        for k in range(joint.nv):
            rate = joint.rate(q[at, :], xp.eye(joint.nv)[:, k : k + 1], xp)
            columns.append(xp.vstack([xp.zeros(at.start), rate, xp.zeros(model.nq - at.stop)]))
    return xp.hstack(columns)


def casadi_step(of: DiscreteStep, control: str, apart: bool, gauss_newton: bool) -> Any:
    """See `DiscreteStep.casadi_external`."""
    if of.na:
        raise UnsupportedError(
            f"{of.na} actuators have a state, which a step for CasADi has not: export lw.forward_dynamics(model, "
            "actuators=True), whose input `act` is theirs, and integrate that, or give controls in place of activations"
        )
    dynamics, move = (casadi_external(f, None, gauss_newton) for f in (of.dynamics, of.integrator))
    import casadi

    model = of.model
    sizes = {"q": model.nq, "v": model.nv, "u": of.nu}
    sizes |= {"active": len(model.constraints)} if "active" in of.dynamics.inputs else {}
    x = {n: casadi.MX.sym(n, k) for n, k in sizes.items()}
    x |= {n: casadi.MX.sym(n, dynamics.sparsity_in(n)) for n in of.parameters}
    given = {control if n == "u" else n: y for n, y in x.items()}
    if of.varying:
        armature = casadi_external(of.armature, None, gauss_newton)
        known = {n: y for n, y in given.items() if n in of.armature.inputs}
        given["armature"] = armature(**known)["armature_out" if "armature" in known else "armature"]
    solved = dynamics(**given)
    then = move(q=x["q"], v=x["v"], a=solved["a"])
    found = {"q_next": then["q_next"], "v_next": then["v_next"]} | ({"lam": solved["lam"]} if model.rows else {})
    name = dynamics.name().replace("forward_dynamics", "step")
    apart = apart or bool(of.parameters)  # by parameters, derivatives are those of the parts
    slopes = None if apart else _slopes(of, f"jac_{name}", control, list(sizes), found)
    own = {n: dynamics.default_in(dynamics.name_in().index(n)) for n in of.parameters}
    return with_jacobian(name, x, found, slopes, gauss_newton, {"active": 1.0, **own})


def _slopes(of: DiscreteStep, name: str, control: str, names: list[str], found: Mapping[str, Any]) -> Any:
    """The kernel of all Jacobians as a function of CasADi."""
    slopes = EntryStep(of)
    known = {x.name: x for x in inputs_of(of.dynamics, slopes.kernel)}
    inputs = [replace(known[control if n == "u" else n], name=n) for n in names]
    outputs = {n: argument(n, Port(n, y.shape[:1]), None) for n, y in found.items()}
    (loaded,) = load([jacobians_of(name, slopes, inputs, outputs, {"u": control})])
    return loaded
