"""Sine and cosine of a whole array, as LLVM IR.

The only elementary functions that dynamics needs in bulk.

Cody and Waite: ``n = round(2 x / pi)``, ``r = x - n pi/2`` with pi/2 in three parts. With fused multiply-add the
first product is exact, so full-precision parts serve up to |x| < 1e5 even next to multiples of pi/2. Without it,
the parts are short enough for exact products, and the rounding errors of the differences are summed in a tail; float32
then reduces in float64. Then fdlibm's minimax polynomials on |r| <= pi/4 (Cephes' for float32), and the quadrant's
swap and signs: at most 1.8 units in the last place either way. Larger, infinite and NaN arguments are passed to the C
library, lane by lane.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

LIMIT = 1e5
TWO_OVER_PI = 0.6366197723675814
HALF_PI = {  # type, fused multiply-add -> the parts of pi/2
    ("double", True): (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
    ("double", False): (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    ("float", True): (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    ("float", False): (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
}
SINE = {
    "double": (
        -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
    ),
    "float": (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
}  # fmt: skip
COSINE = {
    "double": (
        4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
        -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
    ),
    "float": (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
}  # fmt: skip


def literal(value: float, scalar: str) -> str:
    """A number as LLVM writes it, exactly."""
    if scalar == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def sincos_function(scalar: str, lanes: int, fma: bool, name: str = "sincos_array") -> str:
    """IR of ``name(x, s, c, n)``: s[i] = sin(x[i]), c[i] = cos(x[i]); n is rounded up to whole registers."""
    vector = f"<{lanes} x {scalar}>"
    integer = f"<{lanes} x i{64 if scalar == 'double' else 32}>"
    suffix = f"v{lanes}f{64 if scalar == 'double' else 32}"
    size = 8 if scalar == "double" else 4
    lines: list[str] = []
    fresh = iter(range(10**6))

    def splat(value: float) -> str:
        return f"splat ({scalar} {literal(value, scalar)})"

    def whole(value: int) -> str:
        return f"splat (i{8 * size} {value})"

    def emit(code: str) -> str:
        result = f"%k{next(fresh)}"
        lines.append(f"  {result} = {code}")
        return result

    def fused(a: str, b: str, c: str) -> str:
        return emit(f"call {vector} @llvm.fmuladd.{suffix}({vector} {a}, {vector} {b}, {vector} {c})")

    def horner(z: str, coefficients: tuple[float, ...]) -> str:
        value = splat(coefficients[-1])
        for c in coefficients[-2::-1]:
            value = fused(value, z, splat(c))
        return value

    def product(a: str, b: str) -> str:
        return emit(f"fmul {vector} {a}, {b}")

    magic = 1.5 * 2.0 ** (52 if scalar == "double" else 23)
    shifted = fused("%x", splat(TWO_OVER_PI), splat(magic))
    bits = emit(f"bitcast {vector} {shifted} to {integer}")
    n = emit(f"fsub {vector} {shifted}, {splat(magic)}")
    parts = HALF_PI[scalar, fma]
    tail = None
    if fma:
        r, minus_n = "%x", emit(f"fneg {vector} {n}")
        for part in parts:
            r = fused(minus_n, splat(part), r)
    elif scalar == "double":
        r, tail = _compensated(emit, vector, n, [splat(part) for part in parts])
    else:
        r = _reduced_in_double(emit, lanes, n, parts)
    z = product(r, r)
    cosine = fused(product(z, z), horner(z, COSINE[scalar]), fused(z, splat(-0.5), splat(1.0)))
    if tail is None:
        sine = fused(product(r, z), horner(z, SINE[scalar]), r)
    else:
        curve = fused(product(r, z), horner(z, SINE[scalar]), tail)
        sine = emit(f"fadd {vector} {r}, {curve}")
        cosine = emit(f"fsub {vector} {cosine}, {product(r, tail)}")
    odd_bit = emit(f"and {integer} {bits}, {whole(1)}")
    odd = emit(f"icmp ne {integer} {odd_bit}, {whole(0)}")
    for role, first, second, quadrant in (("s", cosine, sine, bits), ("c", sine, cosine, None)):
        value = emit(f"select <{lanes} x i1> {odd}, {vector} {first}, {vector} {second}")
        turned = quadrant or emit(f"add {integer} {bits}, {whole(1)}")
        sign = emit(f"shl {integer} {turned}, {whole(8 * size - 2)}")
        sign = emit(f"and {integer} {sign}, {whole(-(2 ** (8 * size - 1)))}")
        as_bits = emit(f"bitcast {vector} {value} to {integer}")
        flipped = emit(f"xor {integer} {as_bits}, {sign}")
        result = emit(f"bitcast {integer} {flipped} to {vector}")
        lines.append(f"  store {vector} {result}, ptr %{role}p, align {size}")
    body = "\n".join(lines)
    extend = "fpext float %big to double" if scalar == "float" else "fadd double %big, 0.0"
    narrow = "fptrunc double {0} to float" if scalar == "float" else "fadd double {0}, 0.0"
    return f"""
declare {vector} @llvm.fmuladd.{suffix}({vector}, {vector}, {vector})
declare {vector} @llvm.fabs.{suffix}({vector})
declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)
declare double @sin(double)
declare double @cos(double)

define void @{name}(ptr noalias %xs, ptr noalias %ss, ptr noalias %cs, i64 %n) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %xp = getelementptr {scalar}, ptr %xs, i64 %i
  %sp = getelementptr {scalar}, ptr %ss, i64 %i
  %cp = getelementptr {scalar}, ptr %cs, i64 %i
  %x = load {vector}, ptr %xp, align {size}
{body}
  %magnitude = call {vector} @llvm.fabs.{suffix}({vector} %x)
  %large = fcmp uge {vector} %magnitude, {splat(LIMIT)}
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> %large)
  br i1 %any, label %slow, label %next, !prof !0
slow:
  %j = phi i64 [%i, %loop], [%j1, %kept]
  %bp = getelementptr {scalar}, ptr %xs, i64 %j
  %big = load {scalar}, ptr %bp, align {size}
  %w = {extend}
  %lower = fcmp olt double %w, {literal(LIMIT, "double")}
  %upper = fcmp ogt double %w, {literal(-LIMIT, "double")}
  %fine = and i1 %lower, %upper
  br i1 %fine, label %kept, label %call
call:
  %sw = call double @sin(double %w)
  %cw = call double @cos(double %w)
  %sn = {narrow.format("%sw")}
  %cn = {narrow.format("%cw")}
  %sq = getelementptr {scalar}, ptr %ss, i64 %j
  %cq = getelementptr {scalar}, ptr %cs, i64 %j
  store {scalar} %sn, ptr %sq, align {size}
  store {scalar} %cn, ptr %cq, align {size}
  br label %kept
kept:
  %j1 = add i64 %j, 1
  %end = add i64 %i, {lanes}
  %more = icmp ult i64 %j1, %end
  br i1 %more, label %slow, label %next
next:
  %i1 = add i64 %i, {lanes}
  %again = icmp ult i64 %i1, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}}
!0 = !{{!"branch_weights", i32 1, i32 100000}}
"""


def _compensated(emit: Callable[[str], str], vector: str, n: str, parts: list[str]) -> tuple[str, str]:
    """x - n pi/2 as a value and a tail, by exact products and the errors of the differences."""
    r, tail = "%x", ""
    for part in parts:
        w = emit(f"fmul {vector} {n}, {part}")
        difference = emit(f"fsub {vector} {r}, {w}")
        lost = emit(f"fsub {vector} {emit(f'fsub {vector} {r}, {difference}')}, {w}")
        tail = emit(f"fadd {vector} {tail}, {lost}") if tail else lost
        r = difference
    return r, tail


def _reduced_in_double(emit: Callable[[str], str], lanes: int, n: str, parts: Sequence[float]) -> str:
    """x - n pi/2 of float32 numbers, computed in float64."""
    wide, narrow = f"<{lanes} x double>", f"<{lanes} x float>"
    r = emit(f"fpext {narrow} %x to {wide}")
    count = emit(f"fpext {narrow} {n} to {wide}")
    for part in parts[:2]:
        w = emit(f"fmul {wide} {count}, splat (double {literal(part, 'double')})")
        r = emit(f"fsub {wide} {r}, {w}")
    return emit(f"fptrunc {wide} {r} to {narrow}")
