"""Functions of Linkwork where learning happens: `linkwork.learn.jax` and `linkwork.learn.torch`."""
