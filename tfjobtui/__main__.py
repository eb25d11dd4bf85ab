"""`python -m tfjobtui` is the command `tfjobtui`."""

from tfjobtui.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
