"""Prepares a machine, builds and installs the program as a user would, and runs the checks on it.

Started by tests/run, with the standard library alone:

- ``workplace``  where things stand, and the copy of the checkout that is tested
- ``machine``    packages, users, and running a command as one of them
- ``pythons``    interpreters and virtual environments
- ``checks``     lint, pytest and the benchmarks
- ``report``     progress with seconds, and the sum at the end
"""
