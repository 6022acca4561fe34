"""The ground of a model, and where its shapes may touch it."""
