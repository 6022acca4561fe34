"""Constants that are outputs and operands at once."""

import casadi
import numpy as np

from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.programs.from_casadi import read_program


def test_a_constant_output_may_also_be_an_operand() -> None:
    x = casadi.SX.sym("x", 2)
    c = casadi.SX(0.25)
    M = casadi.vertcat(casadi.horzcat(c, x[0] + c), casadi.horzcat(x[1] * x[0] - c, casadi.sin(x[1]) * c))
    f = casadi.Function("f", [x], [M], ["x"], ["M"])
    x = np.array([0.3, -1.2])
    expected = np.array(f(x))
    out = np.full((2, 2), 7.0)
    Kernel(read_program(f))(x, out=(out,))
    np.testing.assert_allclose(out, expected, rtol=4e-16, atol=4e-16)
