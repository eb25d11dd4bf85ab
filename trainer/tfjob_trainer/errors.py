"""What goes wrong in words for the person who trains.

TrainerError           the run cannot go on; exit code 1
└── UsageError       an option, a folder or the environment is wrong; exit code 2
"""


class TrainerError(Exception):
    """A failure whose message is all that the user needs; shown without a traceback."""

    exit_code = 1


class UsageError(TrainerError):
    """Something that the user has to change before training can start."""

    exit_code = 2
