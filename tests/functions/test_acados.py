"""The functions that acados expects: compiled by a C compiler, and called as acados calls them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.errors import InputError
from linkwork.functions.export.casadi_external import EntryJacobians
from linkwork.model import Builder
from linkwork.robots.mechanisms import chain, rod

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def swinger() -> lw.Model:
    """A free body with a leg, whose foot may be on the ground."""
    b = Builder("swinger")
    b.link("trunk", joint=lw.joints.Free(), inertia=rod(3.0, (0.3, 0.1, 0.2), 0.1), actuated=False)
    b.link("leg", "trunk", lw.joints.Revolute("y"), inertia=rod(1.0, (0, 0, -0.4), 0.05))
    b.frame("foot", "leg", lw.Placement.at((0, 0, -0.4)))
    return b.build().with_constraints(lw.point("foot"))


class Functions:
    """A compiled library, as acados uses it: sizes are asked for, then arrays of pointers are given."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / "model.so"
        sources = [str(p) for p in folder.glob("*.c")]
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([str(COMPILER), "-O0", *flags, "-o", str(path), *sources, "-lm"], check=True)
        self.library, self.name = ctypes.CDLL(str(path)), name

    def __call__(self, function: str, *given: np.ndarray) -> list[np.ndarray]:
        full = f"{self.name}_{function}"
        asked = lambda question: getattr(self.library, f"{full}_{question}")  # noqa: E731
        count, sizes = [asked("n_in")(), asked("n_out")()], [ctypes.c_int() for _ in range(4)]
        assert asked("work")(*(ctypes.byref(n) for n in sizes)) == 0
        assert [n.value for n in sizes[:2]] == count == [len(given), count[1]]
        shapes = {}
        for way, n in zip(("in", "out"), count, strict=True):
            sparsity = asked(f"sparsity_{way}")
            sparsity.restype = ctypes.POINTER(ctypes.c_int)
            for k in range(n):
                shape = sparsity(k)[0], sparsity(k)[1]
                assert sparsity(k)[2 + shape[1]] == shape[0] * shape[1]  # entries, where the last column ends
                shapes[way, k] = shape
            assert not sparsity(n)
        for k, x in enumerate(given):
            assert shapes["in", k] == (x.shape if x.ndim == 2 else (len(x), 1))
        pointer = ctypes.POINTER(ctypes.c_double)
        ins = [np.asfortranarray(x, float) for x in given]
        outs = [np.full(shapes["out", k], np.nan, order="F") for k in range(count[1])]
        arg, res = ((pointer * len(xs))(*(x.ctypes.data_as(pointer) for x in xs)) for xs in (ins, outs))
        work = np.empty(max(1, sizes[3].value))
        assert getattr(self.library, full)(arg, res, None, work.ctypes.data_as(pointer), None) == 0
        return outs


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_ode_and_sensitivities_against_the_kernel(tmp_path: Path) -> None:
    model, rng = swinger(), np.random.default_rng(0)
    lw.export_acados(model, tmp_path, "swinger", method="prox_ltl", modes=True)
    call = Functions(tmp_path, "swinger")
    nq, nv, nx, nu = model.nq, model.nv, model.nq + model.nv, 1
    q, v, u = model.random_q(3), rng.standard_normal(nv), rng.standard_normal(nu)
    x, tau = np.concatenate([q, v]), np.concatenate([np.zeros(6), u])
    x[3:7] *= 1.3  # integrators change the length
    fd = lw.forward_dynamics(model, method="prox_ltl", modes=True)
    for p in (np.ones(1), np.zeros(1)):
        (f,) = call("expl_ode_fun", x, u, p)
        moved = lw.integrate(model)(q, 1e-7 * v).q_next
        assert np.allclose(f[:nq, 0], (moved - q) / 1e-7, atol=1e-5)  # R(q) v
        expected = fd(q, v, tau, active=p)
        assert np.allclose(f[nq:, 0], expected.a, rtol=0, atol=1e-9 * np.abs(expected.a).max())

        slopes = EntryJacobians(fd, ("q", "v", "tau"))(x[:nq], v, tau, active=p)
        below = np.hstack([slopes.da_dq, slopes.da_dv, slopes.da_dtau[:, 6:]])
        forward, J, B = call("expl_vde_forw", x, np.eye(nx), np.zeros((nx, nu)), u, p)
        assert np.array_equal(forward, f)
        assert np.allclose(np.hstack([J, B])[nq:], below, rtol=0, atol=1e-9 * np.abs(below).max())
        for k in range(nx):  # R(q) v by x, and a, by differences
            e = 1e-5 * np.eye(nx)[k]
            ahead, behind = (call("expl_ode_fun", x + sign * e, u, p)[0] for sign in (1, -1))
            assert np.allclose(J[:nq, k], (ahead - behind)[:nq, 0] / 2e-5, atol=1e-8)
        assert not B[:nq].any()

        Sx, Su, w = rng.standard_normal((nx, nx)), rng.standard_normal((nx, nu)), rng.standard_normal(nx)
        _, forw, controls = call("expl_vde_forw", x, Sx, Su, u, p)
        assert np.allclose(forw, J @ Sx)
        assert np.allclose(controls, J @ Su + B)
        (back,) = call("expl_vde_adj", x, w, u, p)
        assert np.allclose(back[:, 0], np.hstack([J, B]).T @ w)


def test_command_line_and_names(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", "chain", "-o", str(tmp_path), "--acados"])
    assert done.exit_code != 0  # no robot has that name
    lw.export_acados(chain(2), tmp_path, "robot")
    before = (tmp_path / "robot_acados.c").read_text()
    assert "robot_acados.c" in (tmp_path / "CMakeLists.txt").read_text()
    with pytest.raises(InputError, match="would be replaced"):
        lw.export_acados(chain(3), tmp_path, "robot")
    assert (tmp_path / "robot_acados.c").read_text() == before
    lw.export_acados(chain(3), tmp_path, "robot", overwrite=True)
    assert (tmp_path / "robot_acados.c").read_text() != before


def test_export_command(tmp_path: Path) -> None:
    urdf = """<robot name="two"><link name="base"/><link name="tip"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="turn" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    (tmp_path / "two.urdf").write_text(urdf)
    arguments = ["export", str(tmp_path / "two.urdf"), "-o", str(tmp_path / "c"), "--acados"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "two_expl_vde_adj_sparsity_out" in (tmp_path / "c" / "two_acados.c").read_text()
    assert CliRunner().invoke(app, [*arguments, "--frame", "tip"]).exit_code != 0
