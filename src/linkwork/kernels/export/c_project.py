"""A folder of exported functions: sources, headers, and one CMakeLists.txt for a library of all.

Functions of several robots can share a folder: each has symbols of its own, and the project lists every source in the
folder that begins with the mark of an export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from linkwork.errors import InputError, listing
from linkwork.kernels.export.c_size import sentence
from linkwork.kernels.export.c_source import MARK, REAL, c_source, identifier, parameters
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.kernels.programs.products import ProductProgram
from linkwork.kernels.programs.program import Program
from linkwork.output_files import saved_text

PROJECT = "CMakeLists.txt"


def export(
    program: Program | IterativeProgram | ProductProgram,
    directory: str | Path,
    name: str | None = None,
    about: Sequence[str] = (),
    defaults: Mapping[str, float] | None = None,
    dtype: str = "float64",
    overwrite: bool = False,
) -> list[Path]:
    """Write ``name.c``, ``name.h`` and ``CMakeLists.txt`` into a directory; the paths written.

    ``about`` and ``defaults`` are for the header. Files of that name with other content are replaced only if told to
    ``overwrite``. A ``CMakeLists.txt`` that no export has written is left as it is, and is not among the paths.
    """
    name = identifier(name or program.name)
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{name}.c": c_source(program, name, [f"{name}.h"], dtype),
        f"{name}.h": c_header(program, name, about, defaults, dtype),
    }
    others = [file for file, text in texts.items() if not overwrite and _differs(root / file, text)]
    if others:
        raise InputError(
            f"{listing(others)} in '{root}' would be replaced by another function: "
            "give this one another name, or allow it with overwrite=True (--force on the command line)"
        )
    for file, text in texts.items():
        saved_text(root / file, text)
    project = root / PROJECT
    if not project.exists() or _exported(project):
        sources = sorted(path.name for path in root.glob("*.c") if _exported(path))
        saved_text(project, cmake_lists(root.resolve().name, sources))
        texts[PROJECT] = ""
    return [root / file for file in texts]


def c_header(
    program: Program | IterativeProgram | ProductProgram,
    name: str | None = None,
    about: Sequence[str] = (),
    defaults: Mapping[str, float] | None = None,
    dtype: str = "float64",
) -> str:
    """The C header: what the function computes, its prototype, sizes of ports and defaults as macros."""
    name = identifier(name or program.name)
    guard = f"LINKWORK_{name.upper()}_H"
    sizes = [
        f"#define {name.upper()}_{identifier(port.name).upper()}_SIZE {port.size}"
        for port in (*program.inputs, *program.outputs)
    ]
    sizes += [f"#define {name.upper()}_{n.upper()}_DEFAULT {value!r}" for n, value in (defaults or {}).items()]
    macros = "\n".join(dict.fromkeys(sizes))
    text = "\n".join(" * " + _comment(line) if line else " *" for line in about)
    return f"""/* {name}: {MARK}.
{text + chr(10) if text else ""} *
 * {sentence(program, dtype)}
 */
#ifndef {guard}
#define {guard}

{macros}

#ifdef __cplusplus
extern "C" {{
#endif
void {name}({parameters(program.inputs, program.outputs, REAL[dtype].kind, restrict="")});
#ifdef __cplusplus
}}
#endif

#endif
"""


def cmake_lists(folder: str, sources: Sequence[str]) -> str:
    """A project that builds functions as one library, called like its folder."""
    library = identifier(folder)
    return f"""# {MARK}: all functions that were exported into this folder, as one library
cmake_minimum_required(VERSION 3.10)
project({library} C)
include(CheckCCompilerFlag)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(CMAKE_CROSSCOMPILING)
  option(LINKWORK_NATIVE "Use all instructions of this machine's processor" OFF)
else()
  option(LINKWORK_NATIVE "Use all instructions of this machine's processor" ON)
endif()
add_library({library}
  {(chr(10) + "  ").join(sources)})
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({library} PRIVATE -O2) # -O3 is slower to compile, and no faster
endif()
check_c_compiler_flag(-march=native LINKWORK_HAS_NATIVE)
if(LINKWORK_NATIVE AND LINKWORK_HAS_NATIVE)
  target_compile_options({library} PRIVATE -march=native)
endif()
target_include_directories({library} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
find_library(LINKWORK_MATH m)
if(LINKWORK_MATH)
  target_link_libraries({library} PUBLIC m)
endif()
"""


def _differs(path: Path, text: str) -> bool:
    """Whether there is a file with another content."""
    return path.exists() and path.read_bytes() != text.encode()


def _exported(path: Path) -> bool:
    """Whether an export has written this file."""
    try:
        with path.open("rb") as stream:
            return MARK.encode() in stream.readline(1000)
    except OSError:
        return False


def _comment(line: str) -> str:
    """A line for a comment: names come from robot files, and must not end it."""
    return "".join(c if c.isprintable() else "?" for c in line).replace("*/", "* /").replace("/*", "/ *")
