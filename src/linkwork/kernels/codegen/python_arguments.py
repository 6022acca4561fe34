"""Arrays that Python gives, checked and written into a driver's table, as LLVM IR.

Exact type, dtype and shape, contiguous, aligned, outputs writable. Inputs at the end may be left out if there are
defaults for them, and an input of one entry may be a bare number.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwork.kernels.codegen.bare_numbers import bare_number
from linkwork.kernels.codegen.fields import fields, stored
from linkwork.kernels.codegen.python_layout import ALIGNED, ARRAY, CONTIGUOUS, DESCR, MOST, WRITABLE
from linkwork.kernels.programs.program import Port


def check_inputs(ports: Sequence[Port], defaults: int) -> str:
    """A function that fills the table from inputs, and returns whether all are valid.

    ``defaults`` is where the words of defaults begin.
    """
    code = list[str]()
    for k, port in enumerate(ports):
        code += [f"port{k}:", *_left_out(k, defaults), _object(k)]
        if port.shape == (1,):
            code += [*_if_equal(f"kind{k}", [_is_array(k)], f"array{k}", f"bare{k}"), *bare_number(k)]
        else:
            code += _if_equal(f"kind{k}", [_is_array(k)], f"array{k}")
        code += _array(k, port, CONTIGUOUS | ALIGNED)
    return _function("check_inputs", fields(("%most", "%words", MOST, "i64")), code, len(ports))


def check_outputs(ports: Sequence[Port]) -> str:
    """The same for arrays to be written: none may be missing."""
    code = list[str]()
    for k, port in enumerate(ports):
        code += [f"port{k}:", _object(k), *_if_equal(f"kind{k}", [_is_array(k)], f"array{k}")]
        code += _array(k, port, CONTIGUOUS | ALIGNED | WRITABLE)
    return _function("check_outputs", f"  %most = add i64 0, {len(ports)}", code, len(ports))


def _function(name: str, begin: str, code: Sequence[str], count: int) -> str:
    newline = "\n"
    return f"""
define internal i1 @{name}(ptr %words, ptr %items, i64 %count, ptr %table, ptr %numbers) #0 {{
{fields(("%type", "%words", ARRAY, "ptr"), ("%descr", "%words", DESCR, "ptr"))}
{begin}
  %few = icmp ule i64 %count, %most
  br i1 %few, label %port0, label %refuse
{newline.join(code)}
port{count}:
  ret i1 true
refuse:
  ret i1 false
}}"""


def _left_out(k: int, defaults: int) -> list[str]:
    """Take the default of input ``k`` if it is not given."""
    return [
        f"  %there{k} = icmp ugt i64 %count, {k}",
        f"  br i1 %there{k}, label %given{k}, label %left{k}",
        f"left{k}:",
        fields((f"%default{k}", "%words", defaults + 16 * k, "ptr")),
        stored(f"%default{k}", "%table", 16 * k, f"l{k}"),
        stored("0", "%table", 16 * k + 8, f"ls{k}", "i64"),
        f"  %nothing{k} = icmp eq ptr %default{k}, null",
        f"  br i1 %nothing{k}, label %refuse, label %port{k + 1}",
        f"given{k}:",
    ]


def _object(k: int) -> str:
    """The object of port ``k``, and its type."""
    return fields((f"%o{k}", "%items", 8 * k, "ptr"), (f"%type{k}", f"%o{k}", 8, "ptr"))


def _is_array(k: int) -> tuple[str, str, str]:
    return "%type", f"%type{k}", "ptr"


def _array(k: int, port: Port, flags: int) -> list[str]:
    """Take the array of port ``k`` if dtype, flags and shape are right."""
    o, sizes = f"%o{k}", [(f"%dim{k}_{axis}", str(n), "i64") for axis, n in enumerate(port.shape)]
    form = [("%descr", f"%descr{k}", "ptr"), (f"%kept{k}", str(flags), "i32"), (f"%nd{k}", str(len(sizes)), "i32")]
    return [
        f"array{k}:",
        fields((f"%data{k}", o, 16, "ptr"), (f"%descr{k}", o, 56, "ptr")),
        fields((f"%nd{k}", o, 24, "i32"), (f"%flags{k}", o, 64, "i32")),
        f"  %kept{k} = and i32 %flags{k}, {flags}",
        *_if_equal(f"form{k}", form, f"sized{k}"),
        f"sized{k}:",
        fields((f"%dims{k}", o, 32, "ptr")),
        *(fields((size, f"%dims{k}", 8 * axis, "i64")) for axis, (size, _, _) in enumerate(sizes)),
        stored(f"%data{k}", "%table", 16 * k, f"d{k}"),
        stored("0", "%table", 16 * k + 8, f"s{k}", "i64"),
        *_if_equal(f"fits{k}", sizes, f"port{k + 1}"),
    ]


def _if_equal(name: str, pairs: Sequence[tuple[str, str, str]], following: str, otherwise: str = "refuse") -> list[str]:
    """Continue only if the two of all these pairs are equal."""
    if not pairs:
        return [f"  br label %{following}"]
    lines = [f"  %{name}_{k} = icmp eq {kind} {a}, {b}" for k, (a, b, kind) in enumerate(pairs)]
    together = f"%{name}_0"
    for k in range(1, len(pairs)):
        lines.append(f"  %{name}_to{k} = and i1 {together}, %{name}_{k}")
        together = f"%{name}_to{k}"
    return [*lines, f"  br i1 {together}, label %{following}, label %{otherwise}"]
