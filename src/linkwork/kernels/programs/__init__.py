"""Programs: the intermediate form, its tracing, derivatives and passes."""
