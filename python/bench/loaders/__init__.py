"""Compares `pushdown.torch.Loader` with the data loaders of others; see bench/README.md."""
