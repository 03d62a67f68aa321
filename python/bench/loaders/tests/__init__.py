"""Tests of what the comparison of data loaders computes."""
