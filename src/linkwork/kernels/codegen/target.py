"""The target of machine code: triple, CPU, features, and width of vector registers.

Code is compiled for this machine's processor. ``LINKWORK_TARGET`` names a narrower one of its kind instead, so that all
machines of a mixed set compute the same bits, or to see how fast older ones are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache

import llvmlite.binding as llvm

from linkwork.errors import KernelError
from linkwork.forks import BUSY, apart
from linkwork.system.code import architecture, relocation, triple_for, unsupported

PROCESSORS = {
    "avx512": ("x86_64", "skylake-avx512"),
    "avx2": ("x86_64", "haswell"),
    "sse2": ("x86_64", "x86-64"),
    "neon": ("aarch64", "cortex-a72"),
}
"""Architecture and processor of named targets: the oldest that has these registers."""


@dataclass(frozen=True)
class Target:
    """A processor as LLVM names it. ``Target.host()`` is the one that code runs on here."""

    triple: str
    cpu: str
    features: str

    @staticmethod
    def host() -> Target:
        """This machine's processor, or the narrower one that ``LINKWORK_TARGET`` names."""
        return _host(os.environ.get("LINKWORK_TARGET", ""))

    @staticmethod
    def named(name: str) -> Target:
        """``avx512``, ``avx2``, ``sse2`` or ``neon`` (64-bit ARM), on Linux."""
        if name not in PROCESSORS:
            raise KernelError(f"no target called '{name}'; valid: {', '.join(PROCESSORS)}")
        processor, cpu = PROCESSORS[name]
        return Target(f"{processor}-unknown-linux-gnu", cpu, "")

    @property
    def _is_x86(self) -> bool:
        return architecture(self.triple) == "x86_64"

    @property
    def register_bits(self) -> int:
        """The width of a vector register."""
        if not self._is_x86:
            return 128
        if "+avx512f" in self.features or "avx512" in self.cpu:
            return 512
        return 256 if "+avx2" in self.features or self.cpu == "haswell" else 128

    @property
    def has_fma(self) -> bool:
        """Whether a*b+c is one instruction with one rounding."""
        return not self._is_x86 or self.register_bits > 128

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.register_bits == 512 or not self._is_x86 else 16

    def lanes(self, dtype: str) -> int:
        """How many states one register holds."""
        return self.register_bits // (64 if dtype == "float64" else 32)

    def machine(self, level: int = 2) -> llvm.TargetMachine:
        """A code generator for this target."""
        _initialize()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc=relocation(self.triple), codemodel="jitdefault",
        )  # fmt: skip


@cache
def _host(name: str) -> Target:
    with BUSY:
        mine = apart(_this_machine)
    choices = runnable(mine)
    if name and name not in choices:
        raise KernelError(f"LINKWORK_TARGET is '{name}'; this machine can run: {', '.join(choices)}")
    return choices[name] if name else mine


def runnable(machine: Target) -> dict[str, Target]:
    """The named targets whose code runs on a machine, for its system."""
    named = {name: replace(Target.named(name), triple=machine.triple) for name in PROCESSORS}
    return {
        name: target
        for name, target in named.items()
        if PROCESSORS[name][0] == architecture(machine.triple) and target.register_bits <= machine.register_bits
    }


def _this_machine() -> Target:
    _initialize()
    triple = triple_for(llvm.get_process_triple())
    if why := unsupported(triple):
        raise KernelError(why)
    return Target(triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
