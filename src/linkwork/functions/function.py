"""The functions that factories return: one function of one model, on a backend."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import ref

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.algorithms.common.least_inertia import is_lost, lost
from linkwork.algorithms.registry import FD, methods
from linkwork.algorithms.tree.crba import crba
from linkwork.backends import Ops
from linkwork.backends.longer import LONGER
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import FLAG, NAMES, Kind, checked, optional, whole
from linkwork.closure.velocities import idle_joints
from linkwork.errors import InputError, SingularError, listing
from linkwork.functions.dense_judge import Resolved
from linkwork.functions.method_choice import Choice
from linkwork.functions.options import OPTIONS
from linkwork.functions.recipes import remade
from linkwork.functions.traced import Traced
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.planner.plan import Plan
from linkwork.rewrite.rewritten import Rewritten

if TYPE_CHECKING:
    from linkwork.kernels.calls.executable import Executable
    from linkwork.kernels.calls.kernel import Bound, Results

WRT = optional(NAMES)
BATCH = optional(whole(0, what="a number of states, or None for one"))

if TYPE_CHECKING:
    from typing_extensions import TypeVar as Defaulting

    R = Defaulting("R", default=Any)
else:
    R = TypeVar("R")


class Function(Traced, Generic[R]):
    """A function of named inputs, for one state `(n,)` or a batch `(B, n)`; returns arrays by name.

    `f(q, v)`, `f(q, v=v)`: inputs in order or by name; those with a default may be left out. `out=` takes arrays to
    write into, one for each result, or the result of an earlier call; `bind()` is for the least overhead of all.

    `backend="numpy"` executes the algorithm as it is written, "casadi" evaluates its trace, "kernel" the machine code
    made of that trace. All three have the same inputs and results. Nothing is planned, traced or compiled before it is
    needed. `identity` lists what the function depends on besides its model, method and name; without it, it is traced
    anew in every process. `result` is the class of its result, else a named tuple.
    """

    prox: Prox | None = None
    differentiable = True

    @checked(**OPTIONS)
    def __init__(
        self,
        name: str,
        model: Model,
        inputs: Mapping[str, int],
        body: Any,
        *,
        method: str | Choice = "",
        backend: str = "kernel",
        dtype: str = "float64",
        threads: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        defaults: Mapping[str, np.ndarray] | None = None,
        identity: tuple[Any, ...] | None = None,
        result: type[R] | None = None,
        judge: Resolved | None = None,
    ) -> None:
        if dtype != "float64" and backend != "kernel":
            raise InputError(f"dtype '{dtype}' needs backend='kernel'; the others compute in float64")
        self.name, self.model, self.backend = name, model, backend
        self.choice, self.inputs, self.defaults = method, dict(inputs), dict(defaults or {})
        self.dtype, self.threads, self.judge = dtype, threads, judge
        self._body, self._identity, self._shapes, self._result = body, identity, dict(shapes or {}), result

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}[{k}]" for n, k in self.inputs.items())
        known = self.choice.settled if isinstance(self.choice, Choice) else self.choice or self.name
        by = f"by {known}" if known else "by a method to be planned"
        return f"<{self.name}({inputs}) of '{self.model.name}' {by}, {self.backend}>"

    def __reduce__(self) -> Any:
        if self.recipe is None:
            raise pickle.PicklingError(f"{self!r} has a body of its own: only what factories make can be pickled")
        return remade, (*self.recipe, self.choice.settled if isinstance(self.choice, Choice) else None)

    # properties

    @property
    def method(self) -> str:
        """The method's name; "" if there is only one. Planned when first needed, if the user named none."""
        return self.choice.method.name if isinstance(self.choice, Choice) else self.choice

    @property
    def plan(self) -> Plan:
        """The methods to choose from, by predicted time."""
        if not isinstance(self.choice, Choice):
            raise InputError(f"there is one method for {self.name.replace('_', ' ')}, and nothing to plan")
        return self.choice.plan

    def explain(self) -> str:
        """The plan as a table."""
        return self.plan.explain()

    # calls

    _native: Executable | None = None  # the form whose machine code `__call__` is

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> R:
        return self._call(args, named, out)

    def _call_natively(self) -> None:
        """Give this function a class of its own, whose `__call__` is machine code.

        Python looks for `__call__` in the class of an object, so that a call costs no frame of Python. Inputs are
        checked only if the result is not finite: invalid ones never give numbers. Everything else goes to `_call`.
        """
        form, me, kind = self.kernel.native(False, whole=False), ref(self), type(self)
        if self._native is form or not (
            kind.__call__ is Function.__call__ or isinstance(kind.__call__, BuiltinFunctionType)
        ):
            return

        def otherwise(*args: Any, out: Any = None, **named: Any) -> Any:
            return me()._call(args, named, out)  # type: ignore[union-attr]

        self._native, code = form, self.kernel.called(otherwise)
        if code is None:
            return
        if kind.__call__ is Function.__call__:
            same = {n: getattr(kind, n) for n in ("__module__", "__qualname__", "__doc__")}
            self.__class__ = type(kind.__name__, (kind,), same)
        type(self).__call__ = code  # type: ignore[method-assign]

    def _call(self, args: tuple[Any, ...], named: dict[str, Any], out: Any) -> R:
        """Any call. A kernel's inputs are checked only if its results are not all finite."""
        into = None if out is None else Kind("arrays to write to", self._into).checked("out", out, {})
        if self.backend == "kernel":
            given = self._ordered(args, named)
            try:
                result, fine = self.kernel.judged(given, into)
            except InputError:
                self._take(args, named)  # raises the error in terms of this function
                raise
            if self.kernel.takes_one_state:
                self._call_natively()
            if not fine:
                result = self._sound(result, *self._take(args, named))
            return cast(R, result)
        arrays, batch = self._take(args, named)
        result = self._sound(self._computed(arrays, batch), arrays, batch)
        return cast(R, result if into is None else self._filled(into, result, arrays))

    @checked(batch=BATCH)
    def bind(self, batch: int | None = None) -> Bound[R]:
        """Fixed buffers and a call without arguments: the least overhead there is.

        `b = f.bind()`; write `b.inputs.q[:]`, call `b()`, read `b.outputs`, which the next call overwrites. `batch` is
        the number of states. Nothing is checked: what cannot be computed is NaN, and `b.outputs.converged` says the
        rest. For one thread at a time.
        """
        if self.backend != "kernel":
            raise InputError(f"bind() needs backend='kernel', and this is '{self.backend}'")
        return self.kernel.bind(batch)

    # derivatives

    @checked(wrt=WRT)
    def derivatives(self, wrt: Sequence[str] | None = None) -> Function[Any]:
        """The function of the Jacobians of all outputs by the inputs `wrt` (all without a default).

        They are called `da_dq, da_dv, ...`: rows are the output's entries, columns the input's; by q there are nv, in
        the chart of `integrate`: the derivative of f(integrate(q, dq)) by dq at zero. Solutions (`a`, `lam`) come with
        them. Implicit, at the solution, whatever the method and its iterations.

        Examples:
            >>> fd = lw.forward_dynamics(chain(3).with_constraints(lw.point("linktip")), method="prox_ltl")
            >>> d = fd.derivatives()(np.ones(3), np.zeros(3), np.zeros(3))
            >>> d.da_dq.shape, d.dlam_dtau.shape
            ((3, 3), (3, 3))
        """
        from linkwork.functions.differentiation import derivatives

        return derivatives.derivatives(self, wrt)

    @checked(wrt=WRT)
    def jvp(self, wrt: Sequence[str] | None = None) -> Function[Any]:
        """The function `(q, v, ..., dq, dv, ...) -> da, dlam, ...`: how outputs change with the inputs `wrt`.

        Examples:
            >>> change = lw.inverse_dynamics(chain(3)).jvp(["q"])
            >>> change(np.ones(3), np.zeros(3), np.zeros(3), np.array([0.01, 0, 0])).dtau.shape
            (3,)
        """
        from linkwork.functions.differentiation import derivatives

        return derivatives.jvp(self, wrt)

    @checked(wrt=WRT)
    def vjp(self, wrt: Sequence[str] | None = None) -> Function[Any]:
        """The function `(q, v, ..., w_a, w_lam, ...) -> g_q, g_v, ...`: gradients of sum w a + ...

        By the inputs `wrt`.

        Weights of matrices are flat, row by row. One call costs a few times the function, for any number of inputs.

        Examples:
            >>> gradient = lw.energy(chain(3)).vjp(["q"])
            >>> gradient(np.ones(3), np.zeros(3), [0.0], [1.0]).g_q.shape
            (3,)
        """
        from linkwork.functions.differentiation import derivatives

        return derivatives.vjp(self, wrt)

    @checked(wrt=WRT)
    def hvp(self, wrt: Sequence[str] | None = None) -> Function[Any]:
        """The function `(q, ..., w_a, w_lam, dq, ...) -> h_q, h_v, ...`: products of second order.

        h is how the gradients of `vjp` change with the inputs `wrt`: the derivative of g(integrate(q, t dq), v + t dv,
        ...) by t at zero, for fixed weights. For a vector space that is the Hessian of sum w a + ... times the change.

        Examples:
            >>> curvature = lw.energy(chain(3)).hvp(["q"])
            >>> curvature(np.ones(3), np.zeros(3), [0.0], [1.0], np.array([1.0, 0, 0])).h_q.shape
            (3,)
        """
        from linkwork.functions.differentiation import derivatives

        return derivatives.hvp(self, wrt)

    @checked(wrt=WRT, gauss_newton=FLAG)
    def casadi_external(self, wrt: Sequence[str] | None = None, gauss_newton: bool = False) -> Any:
        """The machine code with its derivatives as an external function of CasADi, for ipopt, fatrop, ...

        It has the inputs and outputs of this function by name; those with a default are inputs, too. Derivatives are
        compiled as well, by the inputs `wrt` (default: all but contact modes and forces to start from; others count as
        constants). There are first derivatives. With `gauss_newton=True` second ones count as zero, so that the exact
        Hessian which a solver asks for is that of Gauss and Newton; without, let the solver approximate it.
        Quaternions in `q` are divided by their length. What cannot be computed is NaN. On Linux no compiler is needed,
        elsewhere a C compiler. The function serves this process and cannot be saved by CasADi; `export` writes C.

        Examples:
            >>> fd = lw.forward_dynamics(chain(3)).casadi_external()
            >>> fd.jacobian()(q=np.ones(3), v=np.zeros(3), tau=np.zeros(3))["jac_a_tau"].shape
            (3, 3)
        """
        from linkwork.functions.export.casadi_external import casadi_external

        return casadi_external(self, wrt, gauss_newton)

    def _computed(self, arrays: list[np.ndarray], batch: int | None) -> Any:
        """The result by one of the other backends, state by state."""
        run = self._execute if self.backend == "numpy" else self._evaluate
        states = [run([x if x.ndim == 1 else x[i] for x in arrays]) for i in range(1 if batch is None else batch)]
        if not states:
            # the shapes of an empty batch come from one state
            states = [
                run(
                    [
                        np.zeros(n) if name not in ("q", "q0") else self.model.neutral()
                        for name, n in self.inputs.items()
                    ]
                )
            ]
        stacked = {n: np.array([s[n] for s in states])[:batch] for n in states[0]}
        return self._shaped({n: x[0] for n, x in stacked.items()} if batch is None else stacked, batch, arrays)

    def _shaped(self, outputs: Mapping[str, np.ndarray], batch: int | None, arrays: list[np.ndarray]) -> Any:
        """Columns as vectors, others in their `shapes`, behind the batch axis."""
        lead = () if batch is None else (batch,)
        shaped = []
        for name, x in outputs.items():
            one = x.shape[len(lead) :]
            one = self._shapes.get(name, one[:1] if len(one) == 2 and one[1] == 1 else one)
            shaped.append(x.reshape((*lead, *one)))
        return self._results(tuple(outputs)).made(shaped, dict(zip(self.inputs, arrays, strict=True)))

    def _results(self, names: tuple[str, ...]) -> Results:
        """How results with these outputs are made."""
        from linkwork.kernels.calls.kernel import Results, result_type

        return Results(self._result or result_type(self.name, names))

    def _into(self, out: Any) -> list[Any]:
        """The arrays to write to."""
        if isinstance(out, list):
            return [*list.__iter__(out)]  # whatever the iterator of a subclass says
        return [*tuple.__iter__(out)] if isinstance(out, tuple) else [out]

    def _filled(self, into: list[Any], result: Any, arrays: list[np.ndarray]) -> Any:
        """The result in these arrays."""
        from linkwork.kernels.calls.arrays import take_outputs
        from linkwork.kernels.programs.program import Port

        names = self._result._fields if self._result is not None else result._fields  # type: ignore[attr-defined]
        found = self._into(result)
        ports = [Port(n, x.shape) for n, x in zip([*names, "report"], found, strict=False)]
        for mine, x in zip(take_outputs(ports, into, np.dtype(self.dtype), None), found, strict=True):
            mine.array[...] = x
        return self._results(tuple(names)).made(into, dict(zip(self.inputs, arrays, strict=True)))

    def _sound(self, result: Any, arrays: list[np.ndarray], batch: int | None) -> Any:
        """The result, if all of it is finite; where not, that of the judge or of more digits."""
        bad = self._odd(list(result), batch)
        for b in bad:
            state = self._state(arrays, b)
            found: Sequence[np.ndarray] | None = None if self.judge is None else self.judge.independent(state)
            found = self._in_more_digits(state) if found is None else found
            if found is None:
                raise self._singular("" if batch is None else f" in {len(bad)} of {batch} states", state)
            for part, x in zip(result, found, strict=True):
                part[b] = x.reshape(part[b].shape)
        return result

    def _in_more_digits(self, state: Mapping[str, np.ndarray]) -> Sequence[np.ndarray] | None:
        """The outputs in NumPy's longest type, if joints that lost their inertia to rounding have one there."""
        if not self.factors_mass or self._on_numpy is None:
            return None
        columns = {n: x.astype(np.longdouble)[:, None] for n, x in state.items()}
        at_rest = np.zeros((self.model.nv, 1), np.longdouble)
        if is_lost(crba(Rewritten(self.model).motion(columns["q"], at_rest, LONGER, columns))):
            return None
        try:
            found = self._on_numpy._execute([x[:, 0] for x in columns.values()], LONGER)
        except SingularError:
            return None
        outputs = [np.asarray(x, dtype=float) for x in found.values()]
        return outputs if all(np.isfinite(x).all() for x in outputs) else None

    @cached_property
    def _on_numpy(self) -> Function[Any] | None:
        """The same function executed by NumPy: in the frames and with the inertias that the user gave."""
        if self.recipe is None:
            return None
        module, name, args, named = self.recipe
        known = self.choice.settled if isinstance(self.choice, Choice) else None
        how = {"backend": "numpy", "dtype": "float64", "threads": None}
        return cast(Function[Any], remade(module, name, args, {**named, **how}, known))

    def _state(self, arrays: list[np.ndarray], b: Any) -> dict[str, np.ndarray]:
        """The inputs of one state of a batch."""
        return {n: x if x.ndim == 1 else x[b] for n, x in zip(self.inputs, arrays, strict=True)}

    @staticmethod
    def _odd(parts: Sequence[np.ndarray], batch: int | None) -> list[Any]:
        """The states in which not all entries of these arrays are numbers."""
        lanes: list[Any] = [...] if batch is None else list(range(batch))
        return [b for b in lanes if not all(np.isfinite(x[b]).all() for x in parts)]

    def _singular(self, where: str = "", state: Mapping[str, np.ndarray] | None = None) -> SingularError:
        """The error for results that are not numbers, in this state."""
        known, idle = methods(FD).get(self.method), list[str]()
        if self.factors_mass and state is not None:
            column = {n: np.asarray(x, dtype=float)[:, None] for n, x in state.items()}
            motion = Rewritten(self.model).motion(column["q"], np.zeros((self.model.nv, 1)), NUMPY, column)
            M = crba(motion)
            idle = idle_joints(self.model, M) or self._idle(lost(M))
        if idle:
            why = (
                f"in this posture the joints {listing(idle)} keep hardly any inertia of their own, or none: give their "
                "links one, or the joints an armature"
            )
        elif not self.model.constraints or (known is not None and (known.least_squares or known.soft)):
            why = "the mass matrix is singular: some joints move no inertia; give their links one, or them an armature"
        else:
            why = (
                "the constraint rows depend on each other, or the posture is singular for them or leaves loops "
                "open. Methods with a proximal term (prox_pv, constrained_aba, ...) or kkt can"
            )
        by = f"{self.method} found" if self.method else "there is"
        return SingularError(f"{self.name}: {by} no solution{where}: {why}")

    def _idle(self, which: np.ndarray) -> list[str]:
        """The joints of some degrees of freedom."""
        t, links = self.model.topology, self.model.links
        return [links[i].joint_name for i in t.links if which[t.v_slices[i]].any()]

    @cached_property
    def _casadi(self) -> Any:
        return self.casadi()

    def _execute(self, arrays: list[np.ndarray], xp: Ops = NUMPY) -> dict[str, np.ndarray]:
        columns = {n: x[:, None] for n, x in zip(self.inputs, arrays, strict=True)}
        try:
            return {n: np.asarray(x) for n, x in self._body(xp, columns).items()}
        except np.linalg.LinAlgError:
            raise self._singular("", dict(zip(self.inputs, arrays, strict=True))) from None

    def _evaluate(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        f = self._casadi
        return {f.name_out(k): np.array(x) for k, x in enumerate(f.call(list(arrays)))}
