"""Programs for other machines: C99 and WebAssembly."""
