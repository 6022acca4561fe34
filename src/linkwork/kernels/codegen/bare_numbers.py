"""Bare numbers (``float``, ``numpy.float64``, ``int``) in place of arrays of one entry, as LLVM IR."""

from __future__ import annotations

from linkwork.kernels.codegen.driver import Frame
from linkwork.kernels.codegen.fields import fields, stored
from linkwork.kernels.codegen.python_layout import DOUBLE, FLOAT, INT, NUMBER

WHOLE = 1e18
"""Whole numbers below it are also those that NumPy has a type for."""


def bare_number_function(frame: Frame) -> str:
    """A function that stores the value of a bare number, and returns whether it is one.

    Larger whole numbers are left to Python, and so is -1, which may be an error's value.
    """
    if all(port.shape != (1,) for port in frame.inputs):
        return ""
    store = "  store double %number, ptr %to, align 8"
    if frame.shape.scalar == "float":
        store = "  %rounded = fptrunc double %number to float\n  store float %rounded, ptr %to, align 4"
    return f"""
declare double @PyLong_AsDouble(ptr)
declare void @PyErr_Clear()
declare double @llvm.fabs.f64(double)

define internal i1 @bare_number(ptr %words, ptr %o, ptr %to) #0 {{
{fields(("%type", "%o", 8, "ptr"), ("%float", "%words", FLOAT, "ptr"), ("%double", "%words", DOUBLE, "ptr"))}
{fields(("%int", "%words", INT, "ptr"))}
  %real = icmp eq ptr %type, %float
  %numpy = icmp eq ptr %type, %double
  %direct = or i1 %real, %numpy
  br i1 %direct, label %read, label %other
read:
{fields(("%held", "%o", NUMBER, "double"))}
  br label %known
other:
  %whole = icmp eq ptr %type, %int
  br i1 %whole, label %convert, label %refuse
convert:
  %converted = call double @PyLong_AsDouble(ptr %o)
  %size = call double @llvm.fabs.f64(double %converted)
  %sized = fcmp olt double %size, {WHOLE:.1e}
  %valid = fcmp one double %converted, -1.0
  %sure = and i1 %sized, %valid
  br i1 %sure, label %known, label %clear
clear:
  call void @PyErr_Clear()
  br label %refuse
known:
  %number = phi double [%held, %read], [%converted, %convert]
{store}
  ret i1 true
refuse:
  ret i1 false
}}"""


def bare_number(k: int) -> list[str]:
    """The code that takes input ``k`` as a bare number.

    Its value is stored among ``numbers``, and the address of that in the table.
    """
    return [
        f"bare{k}:",
        f"  %number{k} = getelementptr i8, ptr %numbers, i64 {8 * k}",
        f"  %known{k} = call i1 @bare_number(ptr %words, ptr %o{k}, ptr %number{k})",
        stored(f"%number{k}", "%table", 16 * k, f"b{k}"),
        stored("0", "%table", 16 * k + 8, f"bs{k}", "i64"),
        f"  br i1 %known{k}, label %port{k + 1}, label %refuse",
    ]
