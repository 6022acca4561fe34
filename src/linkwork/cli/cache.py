"""`linkwork cache`: the disk cache of compiled kernels."""

from __future__ import annotations

from pathlib import Path

import typer

from linkwork.cli.arguments import JsonOption, print_json, terminal

cache_app = typer.Typer(help="The disk cache of compiled kernels.", no_args_is_help=True)
console = terminal()


@cache_app.command("info")
def cache_info(as_json: JsonOption = False) -> None:
    """Where the cache is, how many kernels it holds and how large it is."""
    from linkwork.kernels.cache import object_cache as cache

    facts = {k: str(x) if isinstance(x, Path) else x for k, x in cache.info()._asdict().items()}
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        console.print(f"{key}: {value}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Delete every cached kernel; they are compiled again when needed."""
    from linkwork.kernels.cache import object_cache as cache

    console.print(f"deleted {cache.clear()} kernels")
