"""Slurm's client commands behind the protocols of `tfjobtui.schedulers.scheduler`.

`argv` says what is run, one module per command reads what it prints, `runner` runs it, and `client`
puts the parts together as `SlurmScheduler`.
"""
