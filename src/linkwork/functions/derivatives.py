"""Derivatives of functions: dense (`f.derivatives()`), and products with them (`f.jvp()`, `f.vjp()`).

By q they are in tangent space: nv columns, in the chart of `integrate`, the derivative of f(integrate(q, dq)) by dq at
zero. They are traced and compiled like the functions themselves, for one state or batches.

- Forward dynamics and impulses are differentiated at their solution, whatever the method and its iterations
  (algorithms/derivatives/); one factor serves all columns. A reverse product is one more solve, and one sweep back
  through the equation of motion.
- Inverse dynamics of trees have their own algorithm (`rnea_derivatives`).
- All others are differentiated operation by operation (kernels/differentiate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.derivatives.forward_derivatives import forward_derivatives
from linkwork.algorithms.derivatives.implicit import Implicit
from linkwork.algorithms.derivatives.rnea_derivatives import placed, rnea_derivatives
from linkwork.algorithms.derivatives.rooted import Rooted
from linkwork.algorithms.tree.crba import assemble, crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import Array, Ops
from linkwork.checks import checked
from linkwork.errors import InputError, UnsupportedError, not_found
from linkwork.functions.choice import Choice
from linkwork.functions.function import WRT, Function
from linkwork.functions.kinematics import chosen_frames
from linkwork.functions.parameters import GROUPS
from linkwork.functions.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from linkwork.functions.solver_function import SolverFunction
from linkwork.kernels.columns import COLUMN, FOUND, Group, columns
from linkwork.kernels.differentiate import Tangent, adjoints, tangents
from linkwork.kernels.matrices import Matrix, Tracer
from linkwork.kernels.program import Port, Program
from linkwork.kernels.values import ZERO
from linkwork.lazy import cached_property
from linkwork.model import Model, Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.rewrite.rewritten import in_place, rewritten_model

if TYPE_CHECKING:
    from linkwork.kernels.kernel import Results

Columns = dict[int, Tangent]
Symbol = Callable[[str, int], Array]

LOOPS_FROM = 200_000
"""Operations of all solves for columns from which these are a loop. Measured on Talos with two feet: a loop compiles in
0.4 of the time, and takes 0.6 of the time of straight-line code for one state, but 1.5 in batches; a quadruped on four
points, 60 000 operations, 0.8 and 1.2."""


@checked(wrt=WRT)
def derivatives(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """The Jacobians of a function's outputs by the inputs `wrt`: see `Function.derivatives`."""
    return _remembering(derivatives, Jacobians(function, wrt), function, wrt)


@checked(wrt=WRT)
def jvp(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """Products of a function's Jacobians with changes of inputs: see `Function.jvp`."""
    return _remembering(jvp, Forward(function, wrt), function, wrt)


@checked(wrt=WRT)
def vjp(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """Products of weights with a function's Jacobians: see `Function.vjp`."""
    return _remembering(vjp, Reverse(function, wrt), function, wrt)


def _remembering(make: Callable[..., Any], made: Function[Any], *args: Any) -> Function[Any]:
    """The function with the recipe by which it is pickled."""
    made.recipe = make.__module__, make.__qualname__, args, {}
    return made


class Differentiated(Function[Any]):
    """Derivatives of a function by some of its inputs; `FIXED` ones have none."""

    FIXED = ("active", "lam0")

    def __init__(self, suffix: str, of: Function[Any], wrt: Sequence[str] | None, more: Mapping[str, int]) -> None:
        if of.backend == "casadi":
            raise UnsupportedError("derivatives are for backend='kernel' or 'numpy'; CasADi has its own: f.casadi()")
        if not of.differentiable:
            raise UnsupportedError(f"derivatives of {of.name} through its contacts are not available")
        if isinstance(of, Differentiated):
            raise UnsupportedError("derivatives of derivatives are not available")
        free = [n for n in of.inputs if n not in self.FIXED]
        chosen = [n for n in free if n not in of.defaults] if wrt is None else list(wrt)
        for n in chosen:
            if n not in free:
                raise not_found(f"input of {of.name} that has derivatives", n, free)
        if not chosen or len({*chosen}) < len(chosen):
            raise InputError(f"wrt names inputs of {of.name}, each once: {', '.join(free)}")
        self.of, self.wrt = of, tuple(chosen)
        self.sizes = {n: of.model.nv if n == "q" else of.inputs[n] for n in chosen}
        identity = None if of._identity is None else (suffix, self.wrt, of.name, self._by, *of._identity)
        super().__init__(
            f"{of.name}_{suffix}",
            of.model,
            {**{n: k for n, k in of.inputs.items() if n not in of.defaults}, **more},
            None,
            backend=of.backend,
            dtype=of.dtype,
            threads=of.threads,
            defaults=of.defaults,
            shapes={n: shape for n, shape in of._shapes.items() if n in of.inputs},
            identity=identity,
        )
        self.inputs.update({n: k for n, k in of.inputs.items() if n in of.defaults})

    @property
    def _by(self) -> str:
        """The method, where results depend on it."""
        return "" if isinstance(self.of, SolverFunction) else self.of.method

    @property
    def outputs(self) -> Mapping[str, int]:
        """The function's outputs, flat."""
        if isinstance(self.of, SolverFunction):
            return dict(zip(self.of._names, (self.model.nv, self.model.rows), strict=True))
        return {port.name: port.size for port in self.of._cached_program.outputs}

    def _execute(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        found = self.program.interpret(*arrays)
        return {port.name: x for port, x in zip(self.program.outputs, found, strict=True)}

    def casadi(self) -> Any:
        raise UnsupportedError("derivatives have no CasADi form; differentiate the function's: f.casadi()")

    # how inputs change

    def _seeds(self, xp: Tracer, inputs: Mapping[str, Array]) -> tuple[Columns, dict[str, slice]]:
        """The derivatives of inputs by their columns, and which columns belong to which."""
        from linkwork.functions.row_slopes import configuration_seeds, put

        seeds: Columns = {}
        places, start = dict[str, slice](), 0
        for n in self.wrt:
            places[n] = slice(start, start + self.sizes[n])
            if n == "q":
                motion = Motion(self.model, inputs["q"], xp.zeros(self.model.nv), xp)
                for node, tangent in configuration_seeds(motion, inputs["q"]).items():
                    seeds[node] = {start + c: x for c, x in tangent.items()}
            else:
                for k in range(self.sizes[n]):
                    put(seeds, inputs[n][k : k + 1, :], start + k, xp.eye(1))
            start += self.sizes[n]
        return seeds, places

    def _changes(self, xp: Tracer, inputs: Mapping[str, Array]) -> Columns:
        """The change of each entry of the inputs, for the changes that are inputs: one column."""
        from linkwork.functions.row_slopes import put

        seeds: Columns = {}
        for n in self.wrt:
            change = inputs["d" + n]
            put(seeds, inputs[n], 0, self._rate(inputs["q"], change, xp) if n == "q" else change)
        return seeds

    def _rate(self, q: Array, v: Array, xp: Ops) -> Array:
        """dq/dt for a velocity."""
        t = self.model.topology
        parts = [self.model.links[i].joint.rate(q[t.q_slices[i], :], v[t.v_slices[i], :], xp) for i in t.links]
        return xp.vstack([xp.zeros(0), *parts])

    def _pulled(self, q: Array, gradient: Array, xp: Ops) -> Array:
        """The gradient in tangent space, of one by the entries of q."""
        t, parts = self.model.topology, [xp.zeros(0)]
        for i in t.links:
            nv, at = self.model.links[i].joint.nv, t.q_slices[i]
            for k in range(nv):
                rate = self.model.links[i].joint.rate(q[at, :], xp.eye(nv)[:, k : k + 1], xp)
                parts.append(rate.T @ gradient[at, :])
        return xp.vstack(parts)


class Problem:
    """The equations of a solver function in a state: its motion, joint forces, forces on links, softness."""

    def __init__(self, of: Function[Any], xp: Ops, inputs: Mapping[str, Array]) -> None:
        assert isinstance(of, SolverFunction)
        rows, at = of.rows, None if of.rows is None else of.rows.at
        motion = in_place(of.model, chosen_frames("best", of.backend)).motion(inputs["q"], inputs["v"], xp, inputs)
        self.passive = None if at is not None else joint_forces(of.model, inputs["q"], inputs["v"], xp, inputs)
        self.jump = at is not None
        self.motion = (motion if at is None else at(motion)).classical
        self.tau = inputs["tau"] if "tau" in inputs else xp.zeros(of.model.nv)
        self.fext, self.active = inputs.get("fext"), inputs.get("active")
        soft = None if rows is None else rows.softness
        self.softness = None if soft is None else [xp.constant(r) for r in soft]
        if soft is not None and "softness" in inputs:
            spans = map(of.model.row_span, range(len(soft)))
            self.softness = [inputs["softness"][begin:end, :] for begin, end in spans]
        self.xp, self.inputs = xp, inputs

    @property
    def forces(self) -> dict[int, Array]:
        """External forces on links, in their coordinates."""
        if self.fext is None:
            return {}
        return {i: self.motion.felt(i, self.fext[6 * (i - 1) : 6 * i, :]) for i in self.motion.model.topology.links}

    def solved(self) -> Implicit:
        """The solution, by link recursions."""
        c = rnea(self.motion, None, self.fext, self.passive)
        return Implicit(self.motion, crba(self.motion), c, self.tau, self.softness, self.active)

    def balance(self, solved: Implicit) -> tuple[Array, Array]:
        """M a + c - J^T lam and J a + R lam - k, as functions of the state and of parameters."""
        motion, xp, f = self.motion, self.xp, solved.factor
        needed = rnea(motion, solved.a, self.fext, self.passive) - f.rows_to_joints(solved.multipliers, solved.columns)
        a, residual = motion.accelerations(solved.a), [xp.zeros(0)]
        for r in solved.rows:
            total = sum((K @ a[l] for l, K in r.links.items()), -r.k)
            for i, G in r.joints.items():
                total = total + G @ solved.a[motion.model.topology.v_slices[i], :]
            residual.append(total)
        if self.softness is not None:
            soft = zip(self.softness, solved.by_constraint, strict=True)
            residual[1:] = [r + R * y for r, (R, y) in zip(residual[1:], soft, strict=True)]
        return needed, xp.vstack(residual)


class Jacobians(Differentiated):
    """Jacobians of all outputs by all of `wrt`, named d{output}_d{input}.

    Solutions come with their values.
    """

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        super().__init__("derivatives", of, wrt, {})

    def _results(self, names: tuple[str, ...]) -> Results:
        from linkwork.kernels.kernel import Results

        for known in (ForwardDynamicsDerivatives, InverseDynamicsDerivatives):
            if names == known._fields:
                return Results(known)
        return super()._results(names)

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        if isinstance(self.of, SolverFunction):
            out = self._of_solution(xp, inputs, symbol)
        elif self._of_tree_forces and self._analytic:
            out = self._of_forces(xp, inputs)
        else:
            return self._by_operations(xp, inputs)
        for n, x in out.items():
            self._shapes[n] = x.shape if n.startswith(("d", "right")) else x.shape[:1]
        return out

    @cached_property
    def _loops(self) -> bool:
        """Whether columns are solved for in a loop: many of them, each with many operations, and no jump."""
        if not isinstance(self.of, SolverFunction) or (self.of.rows is not None and self.of.rows.at is not None):
            return False
        n, m, parent = self.model.nv, self.model.rows, self.model.topology.dof_parent
        depth = [0] * n
        for k in range(n):
            depth[k] = depth[parent[k]] + 1 if parent[k] >= 0 else 0
        each = 4 * sum(depth) + 2 * m * (m + n)
        return sum(self.sizes.values()) * each > LOOPS_FROM

    def _looped(self, program: Program) -> Any:
        if not self._loops:
            return program
        (first, second), n, m = self.outputs, self.model.nv, self.model.rows
        groups = [
            Group(f"right_{w}", (Port(f"d{first}_d{w}", (n, k)), Port(f"d{second}_d{w}", (m, k))))
            for w, k in self.sizes.items()
        ]
        names = [f"d{x}_d{w}" for x in (first, second) for w in self.wrt]
        return columns(program, groups, [first, second, *names])

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
                out[key] = _columns(xp, found, x, place)
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
        return lambda n: _columns(xp, found, x, places[n])

    def _of_solution(self, xp: Ops, inputs: dict[str, Array], symbol: Symbol) -> dict[str, Array]:
        """Forward dynamics and impulses."""
        from linkwork.functions.row_slopes import row_slopes

        p, n, m = Problem(self.of, xp, inputs), self.model.nv, self.model.rows
        if not self._analytic:
            return self._of_solution_by_operations(p, symbol)
        differentiate = partial(row_slopes, v=inputs["v"])
        tau = p.tau if p.passive is None else p.tau + p.passive
        given = (p.motion, tau, p.forces, differentiate, p.softness, p.active)
        solved, s = forward_derivatives(*given, sparse=not self._loops)
        passive = self._slopes_of(xp, p.passive, inputs)
        sides = {
            "q": lambda: (passive("q") - s.force_q, -s.row_q),
            "v": lambda: (passive("v") - s.force_v, -s.row_v),
            "tau": lambda: (xp.eye(n), xp.zeros(m, n)),
            "u": lambda: (passive("u"), xp.zeros(m, self.model.nu)),
            "fext": lambda: (_pushes(Rooted(p.motion)), xp.zeros(m, 6 * self.model.nlinks)),
        }
        return self._solutions(p, solved, {w: sides[w]() for w in self.wrt}, symbol)

    def _of_solution_by_operations(self, p: Problem, symbol: Symbol) -> dict[str, Array]:
        """The same with the equations differentiated operation by operation: for joints of the user's own."""
        xp = p.xp
        assert isinstance(xp, Tracer)
        solved = p.solved()
        needed, residual = p.balance(solved)
        seeds, places = self._seeds(xp, p.inputs)
        seeds.update({r >> 1: {} for r in [*solved.a.refs, *solved.multipliers.refs] if xp.values.value(r) is None})
        found = tangents(xp.values, [r >> 1 for x in (needed, residual) for r in x.refs], seeds)
        sides = {
            w: (-_columns(xp, found, needed, place), -_columns(xp, found, residual, place))
            for w, place in places.items()
            if w != "tau"
        }
        if "tau" in places:
            sides["tau"] = xp.eye(self.model.nv), xp.zeros(self.model.rows, self.model.nv)
        return self._solutions(p, solved, {w: sides[w] for w in self.wrt}, symbol)

    def _solutions(
        self, p: Problem, solved: Implicit, sides: Mapping[str, tuple[Array, Array]], symbol: Symbol
    ) -> dict[str, Array]:
        """The solution, and what it becomes for each of these right-hand sides: in a loop, or all at once."""
        (first, second), xp = self.outputs, p.xp
        out = {first: p.inputs["v"] + solved.a if p.jump else solved.a, second: solved.lam}
        if self._loops:
            one = symbol(COLUMN, self.model.nv + self.model.rows)
            x, y = solved.solve(one[: self.model.nv, :], one[self.model.nv :, :])
            rights = {f"right_{w}": xp.vstack([b, r]) for w, (b, r) in sides.items()}
            return {**out, **rights, FOUND: xp.vstack([x, y * solved.roots])}
        firsts, seconds = dict[str, Array](), dict[str, Array]()
        for w, (b, r) in sides.items():
            x, y = solved.solve(b, r)
            firsts[f"d{first}_d{w}"] = x + xp.eye(self.model.nv) if p.jump and w == "v" else x
            seconds[f"d{second}_d{w}"] = y * solved.roots
        return {**out, **firsts, **seconds}


class Forward(Differentiated):
    """Derivatives of all outputs, named d{output}, along changes d{input} of the inputs `wrt`."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        chosen = [n for n in of.inputs if n not in of.defaults] if wrt is None else list(wrt)
        sizes = {"d" + n: of.model.nv if n == "q" else of.inputs[n] for n in chosen if n in of.inputs}
        super().__init__("jvp", of, wrt, sizes)

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        seeds = self._changes(xp, inputs)
        if isinstance(self.of, SolverFunction):
            return self._of_solution(xp, inputs, seeds)
        outputs = self.of._traced(xp, inputs, None)  # type: ignore[arg-type]
        shapes = {port.name: port.shape for port in self.of._cached_program.outputs}
        found = tangents(xp.values, [r >> 1 for x in outputs.values() for r in x.refs], seeds)
        self._shapes.update({"d" + n: shapes[n] for n in outputs})
        return {"d" + n: _columns(xp, found, x, slice(0, 1)) for n, x in outputs.items()}

    def _of_solution(self, xp: Tracer, inputs: Mapping[str, Array], seeds: Columns) -> dict[str, Array]:
        p = Problem(self.of, xp, inputs)
        solved = p.solved()
        needed, residual = p.balance(solved)
        seeds |= {r >> 1: {} for r in [*solved.a.refs, *solved.multipliers.refs] if xp.values.value(r) is None}
        found = tangents(xp.values, [r >> 1 for x in (needed, residual) for r in x.refs], seeds)
        b, r = (-_columns(xp, found, x, slice(0, 1)) for x in (needed, residual))
        x, y = solved.solve(b + inputs["dtau"] if "tau" in self.wrt else b, r)
        if p.jump and "v" in self.wrt:
            x = x + inputs["dv"]
        first, second = self.outputs
        return {"d" + first: x, "d" + second: y * solved.roots}


class Reverse(Differentiated):
    """Gradients g_{input} of sum w_{output} output, for weights of the outputs (flat)."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        self.of, self.model = of, of.model
        super().__init__("vjp", of, wrt, {"w_" + n: k for n, k in self.outputs.items()})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        if isinstance(self.of, SolverFunction):
            return self._of_solution(xp, inputs)
        outputs = self.of._traced(xp, inputs, None)  # type: ignore[arg-type]
        return self._swept(xp, inputs, [(x, inputs["w_" + n]) for n, x in outputs.items()])

    def _of_solution(self, xp: Tracer, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The gradient of s (J a - k) - u (M a + c - J^T lam), with [M, J^T; -J, R] [u; -s] = [w_a; w_lam]."""
        p = Problem(self.of, xp, inputs)
        solved = p.solved()
        first, second = (inputs["w_" + n] for n in self.outputs)
        u, s = solved.solve(first, -(second * solved.roots))
        needed, residual = p.balance(solved)
        out = self._swept(xp, inputs, [(needed, -u), (residual, s)], [solved.a, solved.multipliers])
        if "tau" in self.wrt:
            out["g_tau"] = u
        if p.jump and "v" in self.wrt:
            out["g_v"] = out["g_v"] + first
        return out

    def _swept(
        self,
        xp: Tracer,
        inputs: Mapping[str, Array],
        weighted: Sequence[tuple[Matrix, Matrix]],
        fixed: Sequence[Matrix] = (),
    ) -> dict[str, Array]:
        """The gradients of weighted values, with some held fixed."""
        values, weights = xp.values, dict[int, int]()
        for x, w in weighted:
            for r, weight in zip(x.refs, w.refs, strict=True):
                if values.value(r) is None:
                    signed = values.neg(weight) if r & 1 else weight
                    weights[r >> 1] = values.add(weights[r >> 1], signed) if r >> 1 in weights else signed
        ends = [r for n in self.wrt for r in inputs[n].refs]
        held = [r for x in fixed for r in x.refs if values.value(r) is None]
        found = dict(zip(ends, adjoints(values, weights, [r >> 1 for r in [*ends, *held]]), strict=False))
        out = {}
        for n in self.wrt:
            g = Matrix(values, inputs[n].shape, [found[r] for r in inputs[n].refs])
            out["g_" + n] = self._pulled(inputs["q"], g, xp) if n == "q" else g
        return out


def _known_joints(model: Model) -> bool:
    """Whether the subspaces of all joints have derivatives of their own."""
    from linkwork.joints import Joint

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


def _columns(xp: Tracer, found: Mapping[int, Tangent], x: Matrix, place: slice) -> Matrix:
    """The derivatives of the entries of `x`, row-major, by some columns."""
    refs, neg = list[int](), xp.values.neg
    for r in x.refs:
        tangent = found.get(r >> 1, {})
        refs += [neg(d) if r & 1 else d for d in (tangent.get(c, ZERO) for c in range(place.start, place.stop))]
    return Matrix(xp.values, (len(x.refs), place.stop - place.start), refs)
