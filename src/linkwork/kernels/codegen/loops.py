"""Loops as LLVM IR: over ports, axes or entries, and over the turns of a call.

{each("k", "%count", "exit")}
  ... %k ...
{again("k")}
exit:
"""

from __future__ import annotations

from linkwork.kernels.codegen.native_calls import FRESH, FURTHER


def each(k: str, count: str, after: str, entry: str = "entry", end: str | None = None) -> str:
    """`for k in range(count)`: what follows, up to `again`, then the block `after`.

    It leaves the block `entry`; a body of several blocks ends in the block `end`.
    """
    return f"""  br label %each_{k}
each_{k}:
  %{k} = phi i64 [0, %{entry}], [%{k}_next, %{end or f"with_{k}"}]
  %{k}_left = icmp ult i64 %{k}, {count}
  br i1 %{k}_left, label %with_{k}, label %{after}
with_{k}:"""


def again(k: str) -> str:
    """The end of the body of `each`."""
    return f"""  %{k}_next = add i64 %{k}, 1
  br label %each_{k}"""


def in_turns(run: str, context: str, after: str, entry: str = "entry") -> str:
    """Call `run_bound`, whose address is `run`, until all is done, then the block `after`."""
    return f"""  br label %go
go:
  %mode = phi i64 [{FRESH}, %{entry}], [{FURTHER}, %go]
  %more = call i64 {run}(ptr {context}, i64 %mode)
  %unfinished = icmp ne i64 %more, 0
  br i1 %unfinished, label %go, label %{after}"""
