"""The algorithms, one per file; `registry` says what each can do."""
