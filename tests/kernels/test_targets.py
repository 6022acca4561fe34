"""AVX-512, AVX2, SSE2 and NEON: run where this machine can, and look at the assembly where it cannot."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_examples import chain, everything, everything_inputs, states

from linkwork.errors import KernelError
from linkwork.kernels import Kernel, Target
from linkwork.kernels.codegen.lower import STRAIGHT
from linkwork.kernels.object_code.compile import assembly
from linkwork.kernels.object_code.image import Options, lower
from linkwork.kernels.programs.from_casadi import read_program

X86 = {"avx512": 512, "avx2": 256, "sse2": 128}
REGISTER = {"avx512": r"%zmm\d", "avx2": r"%ymm\d", "sse2": r"%xmm\d", "neon": r"v\d+\.2d"}


def runnable() -> list[str]:
    host = Target.host()
    return [name for name, bits in X86.items() if host.triple.startswith("x86_64") and bits <= host.register_bits]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", runnable())
def test_narrower_targets_run_here(name: str, dtype: str) -> None:
    target = Target.named(name)
    eps = np.finfo(dtype).eps
    program = read_program(chain(4))
    inputs = [x.astype(dtype) for x in states(4, 21)]
    kernel = Kernel(program, dtype=dtype, target=target)
    assert kernel.lanes == X86[name] // (64 if dtype == "float64" else 32)
    result = kernel(*inputs)
    for a, b in zip(result, program.interpret(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2000 * eps * (1 + np.abs(b).max()))
    for a, b in zip(result, kernel(*(x[20] for x in inputs)), strict=True):
        np.testing.assert_array_equal(a[20], b)
    whole = read_program(everything())
    given = [x.astype(dtype) for x in everything_inputs(7)]
    got = Kernel(whole, dtype=dtype, target=target)(*given)
    for a, b in zip(got, whole.interpret(*given, dtype=dtype), strict=True):
        np.testing.assert_allclose(a, b, rtol=64 * eps, atol=8 * eps)


@pytest.mark.parametrize("name", ["avx512", "avx2", "sse2", "neon"])
@pytest.mark.parametrize("lanes", [None, 1])
def test_every_target_compiles_to_its_own_instructions(name: str, lanes: int | None) -> None:
    target = Target.named(name)
    options = Options("double", lanes or target.lanes("float64"), target)
    modules: list[str] = []
    lower(read_program(chain(3)), options, modules)
    texts = [assembly(module, target) for module in modules]
    code = "\n".join(texts)
    sines = "avx2" if (name, lanes) == ("avx512", 1) else name  # one state would lose more by the clock than it gains
    assert re.search(REGISTER[sines], texts[-1]), "sines use registers even for one state"
    assert sines == name or not re.search(REGISTER[name], texts[-1])
    if lanes is None:
        assert re.search(REGISTER[name], texts[1])
    fused = {"neon": r"\bfml[as]\b|\bfn?m(add|sub)\b", "sse2": r"vfn?m(add|sub)"}.get(name, r"vfn?m(add|sub)")
    assert bool(re.search(fused, code)) == (name != "sse2")
    calls = set(re.findall(r"(?<!%)\b(?:callq?|bl)\s+\*?([a-z_]\w*)", code))  # %bl is a register
    assert calls <= {"sin", "cos", "memcpy", "sincos_array", "sched_yield", "find_rows", "blank2", "blank4"} | {
        c for c in calls if c.startswith(("chunk", "run", "part", "take", "check", "refuel", "odd", "attach"))
    }


def test_spills_are_aligned_and_rare() -> None:
    """Own register allocation: hardly anything goes to the stack, and what does is aligned."""
    target = Target.named("avx512")
    modules: list[str] = []
    lower(read_program(chain(12)), Options("double", 8, target), modules)
    code = "\n".join(assembly(module, target) for module in modules if module.startswith(STRAIGHT))
    arithmetic = len(re.findall(r"\bv(?:f?n?madd|f?n?msub|fn?m|add|sub|mul)\w*pd\b", code))
    spilled = re.findall(r"vmov([au])p[ds]\s+%zmm\d+, -?\d*\(%rsp\)", code)
    assert arithmetic > 500
    assert len(spilled) < 0.05 * arithmetic
    assert "u" not in spilled


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(KernelError, match="avx512, avx2, sse2, neon"):
        Target.named("cray")


def test_the_host_is_described() -> None:
    host = Target.host()
    assert host.lanes("float64") == host.register_bits // 64
    assert host.lanes("float32") == 2 * host.lanes("float64")
