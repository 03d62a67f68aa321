"""Tests of what is made of results; they need no link and no store."""
