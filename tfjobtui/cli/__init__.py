"""The command line: where the parts are put together, a module per family of commands."""
