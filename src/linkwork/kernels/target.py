"""The target of machine code: triple, CPU, features, and width of vector registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from linkwork.errors import KernelError
from linkwork.forks import BUSY, apart


@dataclass(frozen=True)
class Target:
    """A processor as LLVM names it. ``Target.host()`` is this machine's."""

    triple: str
    cpu: str
    features: str

    @staticmethod
    @cache
    def host() -> Target:
        with BUSY:
            return apart(_this_machine)

    @staticmethod
    def named(name: str) -> Target:
        """``avx512``, ``avx2``, ``sse2`` (this system, a narrower x86) or ``neon`` (64-bit ARM Linux)."""
        x86 = "x86_64-unknown-linux-gnu"
        known = {
            "avx512": Target(x86, "skylake-avx512", ""),
            "avx2": Target(x86, "haswell", ""),
            "sse2": Target(x86, "x86-64", ""),
            "neon": Target("aarch64-unknown-linux-gnu", "cortex-a72", ""),
        }
        if name not in known:
            raise KernelError(f"no target called '{name}'; valid: {', '.join(known)}")
        return known[name]

    @property
    def register_bits(self) -> int:
        """The width of a vector register."""
        if not self.triple.startswith("x86_64"):
            return 128
        if "+avx512f" in self.features or "avx512" in self.cpu:
            return 512
        return 256 if "+avx2" in self.features or self.cpu == "haswell" else 128

    @property
    def has_fma(self) -> bool:
        """Whether a*b+c is one instruction with one rounding."""
        return not self.triple.startswith("x86_64") or self.register_bits > 128

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.register_bits == 512 or not self.triple.startswith("x86_64") else 16

    def lanes(self, dtype: str) -> int:
        """How many states one register holds."""
        return self.register_bits // (64 if dtype == "float64" else 32)

    def machine(self, level: int = 2) -> llvm.TargetMachine:
        """A code generator for this target."""
        _initialize()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic" if "aarch64" in self.triple else "default",
            codemodel="jitdefault",
        )  # fmt: skip


def _this_machine() -> Target:
    _initialize()
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
