"""Dense Jacobians of all outputs of a function: `f.derivatives()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from linkwork.algorithms.derivatives.base_frame_motion import Rooted
from linkwork.algorithms.derivatives.forward_derivatives import Solver, forward_derivatives
from linkwork.algorithms.derivatives.inverse_derivatives import InverseSolution
from linkwork.algorithms.derivatives.kkt_solution import Equations, Implicit
from linkwork.algorithms.derivatives.limb_solution import LimbSolution
from linkwork.algorithms.derivatives.rnea_derivatives import placed, rnea_derivatives
from linkwork.algorithms.tree.crba import assemble
from linkwork.backends import Array, Ops
from linkwork.errors import UnsupportedError
from linkwork.functions.actuated import ActuatedFunction
from linkwork.functions.differentiation.dense_derivatives import Asked, Asking
from linkwork.functions.differentiation.differentiated import Differentiated, by_columns
from linkwork.functions.differentiation.force_equations import AskedForces, ForceEquations
from linkwork.functions.differentiation.limb_columns import Columns, Side, limb_columns
from linkwork.functions.differentiation.motion_equations import MotionEquations, forces_on_links
from linkwork.functions.differentiation.row_slopes import row_slopes
from linkwork.functions.function import Function
from linkwork.functions.kinematics import chosen_frames
from linkwork.functions.method_choice import Choice
from linkwork.functions.parameters import GROUPS
from linkwork.functions.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from linkwork.functions.solver_function import SolverFunction
from linkwork.joints import Joint
from linkwork.kernels.programs.differentiate import tangents
from linkwork.kernels.programs.matrices import Tracer
from linkwork.kernels.programs.products import ProductProgram
from linkwork.kernels.programs.program import Program
from linkwork.kernels.programs.value_numbering import Outgrown
from linkwork.lazy import cached_property
from linkwork.model import Model, Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.rewrite.rewritten import rewritten_model
from linkwork.structure.limbs import independent

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Results
    from linkwork.kernels.programs.iterate import IterativeProgram

Symbol = Callable[[str, int], Array]
Forces = InverseSolution | AskedForces
ForceSides = dict[str, Callable[[], tuple[Array, Array]]]
"""By an input, r and s of inverse_derivatives.py."""

PRODUCTS_FROM = 50_000
"""Operations of all solves for columns from which mechanisms in parts that nothing connects, as fingers are, are solved
by trunk and limbs, too. These take the rows of all parts together: on a hand with four fingers (up to 37 000) 1.00 to
1.08 times as many operations as factors of the whole matrix do. On other robots they take 0.81 to 1.07 times as many,
most on an arm."""


MOST = 1_000_000
"""Operations up to which derivatives are compiled, in some minutes: the inverse mass matrix of Talos (38 joints) has
600 000."""


class Jacobians(Differentiated):
    """Jacobians of all outputs by all of `wrt`, named d{output}_d{input}.

    Solutions come with their values.
    """

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        super().__init__("derivatives", of, wrt, {})

    _goes_on = False
    """Whether more operations follow, as through a step: products are then straight-line code, too."""

    _columns: Columns | None = None

    def _results(self, names: tuple[str, ...]) -> Results:
        from linkwork.kernels.calls.kernel import Results

        for known in (ForwardDynamicsDerivatives, InverseDynamicsDerivatives):
            if names == known._fields:
                return Results(known)
        return super()._results(names)

    def traced(self, limit: int | None = None) -> Program | IterativeProgram:
        """The program; UnsupportedError where it would take longer to compile than anybody waits."""
        try:
            return super().traced(MOST if limit is None else limit)
        except Outgrown:
            raise UnsupportedError(
                f"{self.of.name}.derivatives() of '{self.model.name}' takes more than {MOST} "
                "operations, which take many minutes to compile: take products with them, jvp() or vjp(), which take a "
                "few times those of the function itself, or name fewer inputs, wrt=[...]"
            ) from None

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        if isinstance(self.of, SolverFunction):
            out = self._of_solution(xp, inputs, symbol)
        elif self._of_tree_forces and self._analytic:
            out = self._of_forces(xp, inputs)
        elif isinstance(self.of, ActuatedFunction):
            out = self._of_least_forces(xp, inputs)
        else:
            return self._by_operations(xp, inputs)
        for n, x in out.items():
            self._shapes.setdefault(n, x.shape if n.startswith("d") else x.shape[:1])
        return out

    @cached_property
    def _by_products(self) -> bool:
        """Whether columns are products of matrices, by trunk and limbs.

        Not those of jumps, nor of small parts that nothing connects.
        """
        model = self.model
        held = []
        for n, c in enumerate(model.constraints):
            at = {i for l in c.original.touches(model) for i in model.topology.supports[l]}
            spans = [range(*model.topology.v_slices[i].indices(model.nv)) for i in at]
            held.append((range(*model.row_span(n)), {k for span in spans for k in span}))
        whole = len(independent(model.topology.dof_parent, held)) == 1
        return self.solving > (0 if whole else PRODUCTS_FROM)

    @cached_property
    def solving(self) -> int:
        """About how many operations solving for all columns takes; 0 where it must be straight-line code."""
        if not isinstance(self.of, SolverFunction) or (self.of.rows is not None and self.of.rows.at is not None):
            return 0
        n, m, parent = self.model.nv, self.model.rows, self.model.topology.dof_parent
        depth = [0] * n
        for k in range(n):
            depth[k] = depth[parent[k]] + 1 if parent[k] >= 0 else 0
        return sum(self.sizes.values()) * (4 * sum(depth) + 2 * m * (m + n))

    def _looped(self, program: Program) -> Any:
        if self._columns is None:
            return program
        outputs = [*self.outputs, *self._names]
        return ProductProgram(program, self._columns.products, self._columns.further, outputs).check()

    @property
    def _names(self) -> list[str]:
        """Of all Jacobians of a solution."""
        return [f"d{x}_d{w}" for x in self.outputs for w in self.wrt]

    def _by_operations(self, xp: Ops, inputs: dict[str, Array]) -> dict[str, Array]:
        """Any function."""
        assert isinstance(xp, Tracer)
        seeds, places = self._seeds(xp, inputs)
        outputs = self.of._traced(xp, inputs, None)  # type: ignore[arg-type]
        shapes = {port.name: port.shape for port in self.of._cached_program.outputs}
        found = tangents(xp.values, [r >> 1 for x in outputs.values() for r in x.refs], seeds)
        out = {}
        for name, x in outputs.items():
            for n, place in places.items():
                key = f"d{name}_d{n}"
                out[key] = by_columns(xp, found, x, place)
                self._shapes[key] = (*shapes[name], self.sizes[n])
        return out

    def _of_forces(self, xp: Ops, inputs: dict[str, Array]) -> dict[str, Array]:
        """Inverse dynamics of trees."""
        model = rewritten_model(self.model, chosen_frames("best", self.backend))
        motion = Motion(model, inputs["q"], inputs["v"], xp).classical
        rooted, fext = Rooted(motion), inputs.get("fext")
        at = model.topology.links
        forces = {} if fext is None else {i: motion.felt(i, fext[6 * (i - 1) : 6 * i, :]) for i in at}
        d = rnea_derivatives(rooted, inputs["a"], forces)
        passive = self._slopes_of(xp, joint_forces(self.model, inputs["q"], inputs["v"], xp), inputs)
        known = {
            "q": lambda: placed(motion, d.dq) - passive("q"),
            "v": lambda: placed(motion, d.dv) - passive("v"),
            "a": lambda: assemble(motion, rooted.mass()),
            "fext": lambda: -_pushes(rooted),
        }
        return {f"dtau_d{n}": known[n]() for n in self.wrt}

    def _of_least_forces(self, xp: Ops, inputs: dict[str, Array]) -> dict[str, Array]:
        """Inverse dynamics with constraints; its `residual` is rounding, whose derivative says nothing."""
        assert isinstance(xp, Tracer)
        assert isinstance(self.of, ActuatedFunction)
        p = ForceEquations(self.of, xp, inputs)
        solved, sides = (self._force_sides if self._analytic else self._force_sides_by_operations)(p, inputs)
        found = {w: solved.by_columns(*sides[w]()) for w in self.wrt}
        return {f"d{name}_d{w}": x[k] for k, name in enumerate(("tau", "lam")) for w, x in found.items()}

    def _force_sides(self, p: ForceEquations, inputs: dict[str, Array]) -> tuple[Forces, ForceSides]:
        """The solution, and r and s by each input: by the algorithm of forward dynamics."""
        xp, n = p.xp, self.model.nv

        def solver(given: Equations) -> Forces:
            solved = p.solved_for(given.motion, given.M @ p.a + given.c - given.tau)
            solved.a, solved.M = p.a, given.M
            return solved

        tau = xp.zeros(n) if p.passive is None else p.passive
        given = (p.motion, tau, forces_on_links(p.motion, p.fext), partial(row_slopes, v=inputs["v"]))
        solved, s = forward_derivatives(*given, solver=solver)
        assert isinstance(solved, InverseSolution | AskedForces)
        pushed, none = self._slopes_of(xp, p.passive, inputs), partial(xp.zeros, self.model.rows)
        return solved, {
            "q": lambda: (s.force_q + solved.M @ s.known_q - pushed("q"), self._turning(solved, inputs)),
            "v": lambda: (s.force_v + solved.M @ s.known_v - pushed("v"), none(n)),
            "a": lambda: (solved.M, none(n)),
            "fext": lambda: (-_pushes(Rooted(p.motion)), none(6 * self.model.nlinks)),
        }

    def _force_sides_by_operations(self, p: ForceEquations, inputs: dict[str, Array]) -> tuple[Forces, ForceSides]:
        """The same by differentiating every operation: for joints of the user's own, and by parameters."""
        xp, solved = p.xp, p.solved()
        assert isinstance(xp, Tracer)
        balance, (seeds, places) = p.balance(solved), self._seeds(xp, inputs)
        seeds.update({r >> 1: {} for x in (solved.multipliers, solved.y) for r in x.refs if xp.values.value(r) is None})
        found = tangents(xp.values, [r >> 1 for x in balance for r in x.refs], seeds)

        def side(w: str) -> tuple[Array, Array]:
            r, s = (by_columns(xp, found, x, places[w]) for x in balance)
            return r, s

        return solved, {w: partial(side, w) for w in self.wrt}

    def _turning(self, solved: Forces, inputs: Mapping[str, Array]) -> Array:
        """(dJ) y by q, for fixed y."""
        xp = solved.xp
        assert isinstance(xp, Tracer)
        seeds, places = self._seeds(xp, inputs)
        seeds.update({r >> 1: {} for r in solved.y.refs if xp.values.value(r) is None})
        rates = solved.J @ solved.y
        return by_columns(xp, tangents(xp.values, [r >> 1 for r in rates.refs], seeds), rates, places["q"])

    @property
    def _of_tree_forces(self) -> bool:
        """Whether it differentiates inverse dynamics of all joints, without constraints."""
        choice = self.of.choice
        return self.of.name == "inverse_dynamics" and isinstance(choice, Choice) and choice.method.rows == "none"

    @property
    def _analytic(self) -> bool:
        """Whether the algorithms for derivatives apply: not to joints of the user's own, nor to parameters."""
        return _known_joints(self.model) and not set(GROUPS) & set(self.of.inputs)

    def _slopes_of(self, xp: Ops, x: Array | None, inputs: Mapping[str, Array]) -> Callable[[str], Array]:
        """The derivatives of some forces (None: zero) by an input, operation by operation."""
        if x is None:
            return lambda n: xp.zeros(self.model.nv, self.sizes[n])
        assert isinstance(xp, Tracer)
        seeds, places = self._seeds(xp, inputs)
        found = tangents(xp.values, [r >> 1 for r in x.refs], seeds)
        return lambda n: by_columns(xp, found, x, places[n])

    def _of_solution(self, xp: Ops, inputs: dict[str, Array], symbol: Symbol) -> dict[str, Array]:
        """Forward dynamics and impulses."""
        p, n, m = MotionEquations(self.of, xp, inputs), self.model.nv, self.model.rows
        if not self._analytic:
            return self._of_solution_by_operations(p, symbol)
        differentiate = partial(row_slopes, v=inputs["v"])
        tau = p.tau if p.passive is None else p.tau + p.passive
        given = (p.motion, tau, p.forces, differentiate, p.softness, p.active)
        solver: Solver = partial(Implicit, columns=2 * n, sparse=True, vanishing=p.vanishing)
        if self._by_products:
            solver = partial(LimbSolution, vanishing=p.vanishing)
        if isinstance(xp, Asking):
            solver = Asked
        solved, s = forward_derivatives(*given, solver=solver)
        passive = self._slopes_of(xp, p.passive, inputs)
        sides = {
            "q": lambda: Side(passive("q") - s.force_q, -s.row_q, -s.known_q),
            "v": lambda: Side(passive("v") - s.force_v, -s.row_v, -s.known_v),
            "tau": lambda: Side(xp.eye(n), xp.zeros(m, n)),
            "u": lambda: Side(passive("u"), xp.zeros(m, self.model.nu)),
            "act": lambda: Side(passive("act"), xp.zeros(m, self.model.na)),
            "fext": lambda: Side(_pushes(Rooted(p.motion)), xp.zeros(m, 6 * self.model.nlinks)),
        }
        return self._solutions(p, solved, {w: sides[w]() for w in self.wrt}, symbol)

    def _of_solution_by_operations(self, p: MotionEquations, symbol: Symbol) -> dict[str, Array]:
        """The same with the equations differentiated operation by operation: for joints of the user's own."""
        xp = p.xp
        assert isinstance(xp, Tracer)
        solved = p.solved_by(LimbSolution) if self._by_products else p.solved_by(Implicit)
        needed, residual = p.balance(solved)
        seeds, places = self._seeds(xp, p.inputs)
        seeds.update({r >> 1: {} for r in [*solved.a.refs, *solved.multipliers.refs] if xp.values.value(r) is None})
        found = tangents(xp.values, [r >> 1 for x in (needed, residual) for r in x.refs], seeds)
        sides = {
            w: Side(-by_columns(xp, found, needed, place), -by_columns(xp, found, residual, place))
            for w, place in places.items()
            if w != "tau"
        }
        if "tau" in places:
            sides["tau"] = Side(xp.eye(self.model.nv), xp.zeros(self.model.rows, self.model.nv))
        return self._solutions(p, solved, {w: sides[w] for w in self.wrt}, symbol)

    def _solutions(
        self,
        p: MotionEquations,
        solved: Any,
        sides: Mapping[str, Side],
        symbol: Symbol,
    ) -> dict[str, Array]:
        """The solution, and what it becomes for each of these right-hand sides: by products, or all at once."""
        (first, second), xp = self.outputs, p.xp
        out = {first: p.inputs["v"] + solved.a if p.jump else solved.a, second: solved.lam}
        if isinstance(solved, LimbSolution):
            columns = limb_columns(solved, sides, first, second)
            if self._goes_on:
                found = columns.straight()
                return {**out, **{n: found[n] for n in self._names}}
            self._columns = columns
            self._shapes.update({n: x.shape for n, x in self._columns.given.items()})
            return {**out, **self._columns.given}
        firsts, seconds = dict[str, Array](), dict[str, Array]()
        for w, (b, r, known) in sides.items():
            x, y = solved.solve(b, r)
            x = x if known is None else x + known
            firsts[f"d{first}_d{w}"] = x + xp.eye(self.model.nv) if p.jump and w == "v" else x
            seconds[f"d{second}_d{w}"] = y * solved.roots
        return {**out, **firsts, **seconds}


def _known_joints(model: Model) -> bool:
    """Whether the subspaces of all joints have derivatives of their own."""
    joints = [link.joint for link in model.links[1:]]
    return all(j.constant_subspace or type(j).subspace_slope is not Joint.subspace_slope for j in joints)


def _pushes(rooted: Rooted) -> Array:
    """J^T of all external forces: joint forces by fext, nv x 6 n."""
    m, xp, t = rooted.motion, rooted.xp, rooted.topology
    columns = [xp.zeros(t.nv, 0)]
    for i in t.links:
        moved = rooted.force_from_link(i, m.felt(i, xp.eye(6)))
        size = [s.stop - s.start for s in t.v_slices]
        parts = [rooted.S[j].T @ moved if j in t.supports[i] else xp.zeros(size[j], 6) for j in t.links]
        columns.append(xp.vstack([xp.zeros(0, 6), *parts]))
    return xp.hstack(columns)
