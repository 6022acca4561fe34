"""The functions that acados expects of a model, as C: `lw.export_acados`.

    x = (q, v),    dx/dt = f(x, u, p) = (R(q) v, a(q, v, u, p))

    expl_ode_fun   (x, u, p) -> f
    expl_vde_forw  (x, Sx, Su, u, p) -> f, J_x Sx, J_x Su + J_u
    expl_vde_adj   (x, w, u, p) -> [J_x J_u]^T w

with the names, arguments and questions about sizes of CasADi's generated code. Quaternions are divided by their length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from linkwork.backends import Array, Ops
from linkwork.checks import FLAG, NAME, PATH, checked, optional
from linkwork.errors import InputError
from linkwork.functions.dynamics import forward_dynamics
from linkwork.functions.export.casadi_external import EntryJacobians
from linkwork.functions.function import Function
from linkwork.kernels.export.c_source import MARK, identifier, targets
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.output_files import saved_text, written


@checked(model=MODEL, directory=PATH, name=optional(NAME), method=optional(NAME), modes=FLAG, overwrite=FLAG)
def export_acados(
    model: Model,
    directory: str | Path,
    name: str | None = None,
    *,
    method: str | None = None,
    modes: bool = False,
    overwrite: bool = False,
) -> list[Path]:
    """Write explicit dynamics as acados takes them: C files and CMakeLists.txt; gives the paths.

    The functions are `NAME_expl_ode_fun`, `NAME_expl_vde_forw` and `NAME_expl_vde_adj`, in files of a `directory`;
    `name` is that of the model if none is given. `u` are the forces of joints that are actuated, in the order of v.
    `method` is one of forward dynamics. With `modes=True` the parameters `p` are weights of the constraints: 1, or 0
    where one is switched off. Files of another model with that name are replaced only if told to `overwrite` them.
    In CasADi's interface integers are `int`, as acados wants it; compiled with -DCASADI_INT="long long",
    `casadi.external` takes the functions, too.

    Examples:
        >>> sorted(path.name for path in lw.export_acados(chain(3), "mpc", "chain") if path.suffix == ".c")
        ['chain_acados.c', 'chain_dynamics.c', 'chain_rates.c', 'chain_rates_slopes.c', 'chain_slopes.c']
    """
    name = identifier(name or model.name)
    dynamics, rates = forward_dynamics(model, method=method, modes=modes), _rates(model)
    parts = {
        "dynamics": dynamics,
        "slopes": EntryJacobians(dynamics, ("q", "v", "tau")),
        "rates": rates,
        "rates_slopes": EntryJacobians(rates, ("q", "v")),
    }
    root = Path(directory)

    def write() -> list[Path]:
        root.mkdir(parents=True, exist_ok=True)
        text, path = "\n".join(_source(model, name, parts, modes)), root / f"{name}_acados.c"
        if path.exists() and path.read_text(encoding="utf-8") != text and not overwrite:
            raise InputError(
                f"'{path.name}' in '{root}' would be replaced by that of another model: give this one another name, or "
                "allow it with overwrite=True (--force on the command line)"
            )
        saved_text(path, text)
        others = [p for n, f in parts.items() for p in f.export(root, f"{name}_{n}", overwrite=overwrite)]
        return list(dict.fromkeys([path, *others]))

    return written(directory, write)


def _rates(model: Model) -> Function[Any]:
    """(q, v) -> dq/dt."""

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        t, parts = model.topology, [xp.zeros(0)]
        for i in t.links:
            joint = model.links[i].joint
            parts.append(joint.rate(x["q"][t.q_slices[i], :], x["v"][t.v_slices[i], :], xp))
        return {"rate": xp.vstack(parts)}

    return Function("rates", model, {"q": model.nq, "v": model.nv}, body, identity=())


def _source(model: Model, name: str, parts: Mapping[str, Function[Any]], modes: bool) -> Iterator[str]:
    """The C text: what acados calls, around the functions that compute."""
    nq, nv, nx = model.nq, model.nv, model.nq + model.nv
    t = model.topology
    driven = [k for i in t.links if model.links[i].actuated for k in range(nv)[t.v_slices[i]]]
    nu, np_ = len(driven), len(model.constraints) if modes else 0
    yield f"/* {name}: {MARK} */"
    yield "#include <math.h>"
    yield from (f'#include "{name}_{n}.h"' for n in parts)
    yield f"""
#ifndef CASADI_INT
#define CASADI_INT int
#endif
enum {{ NQ = {nq}, NV = {nv}, NX = {nx}, NU = {nu} }};
static const int driven[] = {{{", ".join(map(str, driven or [0]))}}};

/* the forces of all joints */
static void forces(const double *u, double *tau)
{{
    for (int i = 0; i < NV; ++i) tau[i] = 0.0;
    for (int i = 0; i < NU; ++i) tau[driven[i]] = u[i];
}}

/* q with quaternions of length one */
static void normalised(const double *x, double *q)
{{
    for (int i = 0; i < NQ; ++i) q[i] = x[i];"""
    for i in t.links:
        for part in model.unit_parts(i):
            squares = " + ".join(f"q[{k}] * q[{k}]" for k in range(part.start, part.stop))
            yield f"    {{\n        const double length = sqrt({squares});"
            yield f"        for (int i = {part.start}; i < {part.stop}; ++i) q[i] /= length;\n    }}"
    yield f"""}}

static void ode(const double *x, const double *u, const double *p, double *dx)
{{
    double q[NQ], tau[NV];
    const double *v = x + NQ;
    (void)p;
    forces(u, tau);
    normalised(x, q);
{_call(name, "rates", parts["rates"], {"rate": "dx"})}
{_call(name, "dynamics", parts["dynamics"], {"a": "dx + NQ"})}
}}

/* J = [J_x J_u], row by row */
static void linearised(const double *x, const double *u, const double *p, double *J)
{{
    double tau[NV], rq[NQ * NQ], rv[NQ * NV], aq[NV * NQ], av[NV * NV], at[NV * NV];
    const double *q = x, *v = x + NQ; /* these functions divide by lengths themselves */
    (void)p;
    forces(u, tau);
{_call(name, "rates_slopes", parts["rates_slopes"], {"drate_dq": "rq", "drate_dv": "rv"})}
{_call(name, "slopes", parts["slopes"], {"da_dq": "aq", "da_dv": "av", "da_dtau": "at"})}
    for (int i = 0; i < NX; ++i) {{
        double *row = J + i * (NX + NU);
        for (int j = 0; j < NQ; ++j) row[j] = i < NQ ? rq[i * NQ + j] : aq[(i - NQ) * NQ + j];
        for (int j = 0; j < NV; ++j) row[NQ + j] = i < NQ ? rv[i * NV + j] : av[(i - NQ) * NV + j];
        for (int j = 0; j < NU; ++j) row[NX + j] = i < NQ ? 0.0 : at[(i - NQ) * NV + driven[j]];
    }}
}}

/* out = J_x S + more, matrices column by column */
static void product(const double *J, const double *S, int columns, int more, double *out)
{{
    for (int c = 0; c < columns; ++c) {{
        for (int i = 0; i < NX; ++i) {{
            double sum = more ? J[i * (NX + NU) + NX + c] : 0.0;
            for (int j = 0; j < NX; ++j) sum += J[i * (NX + NU) + j] * S[c * NX + j];
            out[c * NX + i] = sum;
        }}
    }}
}}

int {name}_expl_ode_fun(const double **arg, double **res, CASADI_INT *iw, double *w, void *mem)
{{
    (void)iw; (void)w; (void)mem;
    if (res[0]) ode(arg[0], arg[1], arg[2], res[0]);
    return 0;
}}

int {name}_expl_vde_forw(const double **arg, double **res, CASADI_INT *iw, double *w, void *mem)
{{
    (void)iw; (void)mem;
    if (res[0]) ode(arg[0], arg[3], arg[4], res[0]);
    linearised(arg[0], arg[3], arg[4], w);
    if (res[1]) product(w, arg[1], NX, 0, res[1]);
    if (res[2]) product(w, arg[2], NU, 1, res[2]);
    return 0;
}}

int {name}_expl_vde_adj(const double **arg, double **res, CASADI_INT *iw, double *w, void *mem)
{{
    (void)iw; (void)mem;
    linearised(arg[0], arg[2], arg[3], w);
    for (int j = 0; res[0] && j < NX + NU; ++j) {{
        double sum = 0.0;
        for (int i = 0; i < NX; ++i) sum += w[i * (NX + NU) + j] * arg[1][i];
        res[0][j] = sum;
    }}
    return 0;
}}
"""
    x, u, p, Sx, Su = (nx, 1), (nu, 1), (np_, 1), (nx, nx), (nx, nu)
    yield from _questions(f"{name}_expl_ode_fun", [x, u, p], [x], 0)
    yield from _questions(f"{name}_expl_vde_forw", [x, Sx, Su, u, p], [x, Sx, Su], nx * (nx + nu))
    yield from _questions(f"{name}_expl_vde_adj", [x, x, u, p], [(nx + nu, 1)], nx * (nx + nu))


def _call(name: str, part: str, function: Function[Any], into: Mapping[str, str]) -> str:
    """A call with arrays of these names; other results are dropped, settings are the function's."""
    program, lines, given = function.program, [], []
    known = {"q": "q", "v": "v", "tau": "tau", "active": "p"}
    for port in program.inputs:
        if port.name in known:
            given.append(known[port.name])
        else:
            value = float(function._settings[port.name][0])
            lines.append(f"    static const double {part}_{port.name}[1] = {{{value!r}}};")
            given.append(f"{part}_{port.name}")
    for target, port in zip(targets(program.inputs, program.outputs), program.outputs, strict=True):
        if port.name not in into:
            lines.append(f"    double {part}_{target}[{max(port.size, 1)}];")
        given.append(into.get(port.name, f"{part}_{target}"))
    return "\n".join([*lines, f"    {name}_{part}({', '.join(given)});"])


def _questions(
    name: str, inputs: Sequence[tuple[int, int]], outputs: Sequence[tuple[int, int]], words: int
) -> Iterator[str]:
    """What CasADi's interface is asked about sizes; all matrices are dense."""
    for way, shapes in (("in", inputs), ("out", outputs)):
        yield f"CASADI_INT {name}_n_{way}(void) {{ return {len(shapes)}; }}"
        yield f"const CASADI_INT *{name}_sparsity_{way}(CASADI_INT i)\n{{"
        for k, (rows, columns) in enumerate(shapes):
            starts = [rows * c for c in range(columns + 1)]
            numbers = [rows, columns, *starts, *(r for _ in range(columns) for r in range(rows))]
            yield f"    static const CASADI_INT s{k}[] = {{{', '.join(map(str, numbers))}}};"
        yield f"    static const CASADI_INT *const all[] = {{{', '.join(f's{k}' for k in range(len(shapes)))}}};"
        yield f"    return i >= 0 && i < {len(shapes)} ? all[i] : 0;\n}}"
    yield f"""int {name}_work(CASADI_INT *arg, CASADI_INT *res, CASADI_INT *iw, CASADI_INT *w)
{{
    if (arg) *arg = {len(inputs)};
    if (res) *res = {len(outputs)};
    if (iw) *iw = 0;
    if (w) *w = {words};
    return 0;
}}
"""
