"""The tests. A package, so that a test module can import the helpers that stand beside it."""
