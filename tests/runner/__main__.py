"""The commands of tests/run."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.runner import checks, machine, pythons, workplace
from tests.runner.pythons import Python
from tests.runner.report import Report, RunError
from tests.runner.workplace import Workplace

OTHER_VERSIONS = ((3, 11), (3, 13))  # beside the main one: the oldest and the newest
IN_CI = os.environ.get("CI") == "true"
NEEDS_ROOT = "needs root, who starts Slurm's daemons: sudo make"


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends the cluster
    commands = {
        "test": test,
        "base": base,
        "lint": lint,
        "format": reformat,
        "bench": bench,
        "soak": soak,
        "cluster": cluster,
        "clean": clean,
    }
    if not arguments or arguments[0] not in commands:
        print(f"usage: tests/run {{{','.join(commands)}}} [ARGUMENT...]", file=sys.stderr)
        return 2
    report = Report()
    try:
        return commands[arguments[0]](report, arguments[1:])
    except RunError as error:
        report.say(f"stopped: {error}")
        return 1
    except KeyboardInterrupt:
        report.say("interrupted")
        return 130


def test(report: Report, arguments: list[str]) -> int:
    """Everything, on a real cluster; without root what can be had."""
    if os.geteuid() != 0:
        return test_without_root(report, arguments)
    with root_place(report) as (place, python):
        checks.lint(place, report)
        with machine.served_cluster(place.tree, place.cluster, report) as found, report.stage("tests"):
            if arguments:
                report.check("tests", run_pytest(place, checks.suite(arguments), found))
            else:
                everything(place, found, report)
        other_pythons(place, python, report, arguments)
    return report.close()


def everything(place: Workplace, found: dict[str, str], report: Report) -> None:
    """The whole suite. The contract's local side, which mostly waits, runs beside the others."""
    log = place.root / "contract-local.log"
    command, env = pytest_call(place, [checks.CONTRACT, "-m", "not slurm"], found)
    with machine.beside_as_user(command, env=env, cwd=place.run, log=log) as beside:
        report.check("tests", run_pytest(place, [*checks.suite(()), f"--ignore={checks.CONTRACT}"], found))
        report.check("contract on Slurm", run_pytest(place, [checks.CONTRACT, "-m", "slurm"], found))
        rc = beside.wait()
    print(log.read_text(errors="replace"), flush=True)
    report.check("contract on this machine", rc)


def test_without_root(report: Report, arguments: list[str]) -> int:
    """The base suite, and a plain word about the rest."""
    base_checks(report, arguments)
    missing = machine.missing_packages()
    report.note("NOT RUN: the tests on a real Slurm cluster, of the trainer and in a terminal")
    report.note("why: they need root, who starts Slurm's daemons and makes two users")
    report.note(f"to run them: sudo make test (it installs: {', '.join(missing) or 'nothing, all is there'})")
    report.failed.append("not everything was run")
    return report.close()


def base(report: Report, arguments: list[str]) -> int:
    """Lint and the tests that need neither Slurm nor TensorFlow nor a terminal."""
    base_checks(report, arguments)
    return report.close()


def base_checks(report: Report, arguments: list[str]) -> None:
    """The checks of `base`, in the checkout's own .venv."""
    place = checkout_place(report)
    with workplace.only_one_run(place):
        checks.lint(place, report)
        env = {
            **os.environ,
            "PATH": f"{place.venv}/bin:{os.environ['PATH']}",
            "TFJOBTUI_TREE": str(place.tree),
        }
        checks.check_import(place.venv / "bin" / "python", place.run, env)
        with report.stage("base tests"):
            checks.check_pytest(
                report, "base tests", run_here(place, checks.base_suite(arguments), env), arguments
            )


def run_here(place: Workplace, arguments: list[str], env: dict[str, str]) -> int:
    """pytest as the one who started us."""
    command = checks.pytest_command(place.venv, *arguments)
    return subprocess.run(command, cwd=place.run, env=env, check=False).returncode


def lint(report: Report, _: list[str]) -> int:
    """The linters alone."""
    place = checkout_place(report)
    with workplace.only_one_run(place):
        checks.lint(place, report)
    return report.close()


def reformat(report: Report, _: list[str]) -> int:
    """Format the checkout."""
    return checks.reformat(checkout_place(report))


def bench(report: Report, names: list[str]) -> int:
    """The benchmarks, on a cluster of their own: `NAME … [-- OPTION …]`, the options for each of them."""
    require_root("bench")
    cut = names.index("--") if "--" in names else len(names)
    names, options = names[:cut], names[cut + 1 :]
    with (
        root_place(report) as (place, _),
        machine.served_cluster(place.tree, place.cluster, report) as found,
    ):
        env = machine.user_environment(
            place.venv, PYTHONPATH=str(place.run), TFJOBTUI_TREE=str(place.tree), **found
        )
        for script in checks.benches(place.run, names):
            with report.stage(f"bench {script.stem}"):
                argv = [place.venv / "bin" / "python", script.relative_to(place.run), *options]
                report.check(f"bench {script.stem}", machine.run_as_user(argv, env=env, cwd=place.run))
    return report.close()


def soak(report: Report, arguments: list[str]) -> int:
    """The long proofs."""
    require_root("soak")
    with (
        root_place(report) as (place, _),
        machine.served_cluster(place.tree, place.cluster, report) as found,
        report.stage("soak"),
    ):
        report.check("soak", run_pytest(place, ["tests/soak", *arguments], found))
    return report.close()


def cluster(report: Report, _: list[str]) -> int:
    """A cluster to try things on by hand, with the program opened on it."""
    require_root("cluster")
    with (
        root_place(report) as (place, _python),
        machine.served_cluster(place.tree, place.root / "by-hand", report) as found,
    ):
        home = Path(pwd.getpwnam(machine.USERS[0]).pw_dir)
        env = machine.user_environment(place.venv, SLURM_CONF=found["SLURM_CONF"])
        env |= {name: os.environ[name] for name in ("COLORTERM", "TERM_PROGRAM") if name in os.environ}
        program = place.venv / "bin" / "tfjobtui"
        if sys.stdin.isatty() and sys.stdout.isatty():
            return machine.run_as_user([program], env=env, cwd=home, interactive=True)
        user = machine.USERS[0]
        print(f"\nThe cluster is up until Ctrl-C. As {user}, with {program}:\n")
        print(f"  . {found['TFJOBTUI_TEST_CLUSTER']}/env.sh; squeue; sinfo")
        print(
            f"  runuser -u {user} -- env HOME={home} SLURM_CONF={found['SLURM_CONF']} {program}", flush=True
        )
        signal.pause()
    return 0


def clean(report: Report, _: list[str]) -> int:
    """Remove root's workplace; the Makefile removes what stands in the checkout."""
    if os.geteuid() == 0:
        place = workplace.for_users()
        with workplace.only_one_run(place):
            shutil.rmtree(place.root)
        report.say(f"removed {place.root}")
    return 0


def require_root(command: str) -> None:
    """Stop, in words, when we are not root."""
    if os.geteuid() != 0:
        raise RunError(f"make {command} {NEEDS_ROOT} {command}")


@contextlib.contextmanager
def root_place(report: Report) -> Iterator[tuple[Workplace, Python]]:
    """A machine, users, tree and environment that are ready for the tests."""
    os.umask(0o022)
    machine.install_packages(report)
    machine.make_users()
    place = workplace.for_users()
    with workplace.only_one_run(place):
        with report.stage("copy the checkout"):
            workplace.copy_checkout(place)
            account = pwd.getpwnam(machine.USERS[0])
            workplace.give_to(place.run, account.pw_uid, account.pw_gid)
        python = pythons.main_python(place, report)
        pythons.install(python, place.venv, place.tree, "train,dev", report)
        checks.check_import(place.venv / "bin" / "python", place.run, machine.user_environment(place.venv))
        yield place, python


def checkout_place(report: Report) -> Workplace:
    """The checkout's own .venv, with the program and the tools in it."""
    place = workplace.in_checkout()
    workplace.copy_checkout(place)
    pythons.install(pythons.this_python(), place.venv, place.tree, "dev", report)
    return place


def run_pytest(
    place: Workplace, arguments: list[str], variables: dict[str, str], venv: Path | None = None
) -> int:
    """pytest as the ordinary user."""
    command, env = pytest_call(place, arguments, variables, venv)
    return machine.run_as_user(command, env=env, cwd=place.run)


def pytest_call(
    place: Workplace, arguments: list[str], variables: dict[str, str], venv: Path | None = None
) -> tuple[list[str | Path], dict[str, str]]:
    """The command of a run of pytest, and its environment."""
    venv = venv or place.venv
    env = machine.user_environment(venv, TFJOBTUI_TREE=str(place.tree), **variables)
    if IN_CI:
        env |= {"CI": "true", "TFJOBTUI_NO_SKIPS": "1"}
    return checks.pytest_command(venv, *arguments), env


def other_pythons(place: Workplace, main: Python, report: Report, arguments: list[str]) -> None:
    """The base suite on the oldest and the newest Python, whichever isn't the main one."""
    for version in OTHER_VERSIONS:
        if version == main.version:
            continue
        name = f"base tests on Python {version[0]}.{version[1]}"
        found = pythons.find(version)
        python = found and pythons.usable_by_users(found, place, report)
        if python is None:
            report.note(
                f"NOT RUN: {name}: no such Python here that an ordinary user could run (pyenv install it)"
            )
            report.check(name, int(IN_CI))
            continue
        venv = place.root / f"venv-{python.name}"
        pythons.install(python, venv, place.tree, "dev", report)
        with report.stage(name):
            checks.check_pytest(
                report, name, run_pytest(place, checks.other_suite(arguments), {}, venv), arguments
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
