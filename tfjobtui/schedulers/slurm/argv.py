"""The arguments of each command, without the command itself. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfjobtui.schedulers.scheduler import Target
from tfjobtui.schedulers.slurm.form import FIELD_END


def _on(cluster: str | None) -> tuple[str, ...]:
    return ("-M", cluster) if cluster else ()


def show_job(target: Target, *, is_federated: bool) -> tuple[str, ...]:
    """`scontrol show job` for one record.

    The waiting rest of an array is asked for by its last task, which is the last to leave it: the
    array's own id would fetch every task that has been started.
    """
    where = _on(target.cluster) or (() if is_federated else ("--local",))
    return (*where, "-d", "show", "job", record_id(target))


def record_id(target: Target) -> str:
    """The id that names one record."""
    tasks = target.id.tasks
    if tasks is None:
        return str(target.id)
    return f"{target.id.job}_{tasks.ranges[-1][1]}" if tasks.ranges else str(target.id.job)


def plain_id(target: Target) -> str:
    """The number that names one record, for the commands that take no `123_4`."""
    if target.id.task is not None and target.raw_id is not None:
        return str(target.raw_id)
    return str(target.id) if target.id.tasks is None else str(target.id.job)


def show_config() -> tuple[str, ...]:
    """`scontrol show config`."""
    return ("show", "config")


def action_id(target: Target) -> str:
    """The id as scancel and scontrol take it: without a throttle; the array's where its list was cut."""
    tasks = target.id.tasks
    return str(target.id.job) if tasks is not None and (tasks.is_cut or not tasks.ranges) else str(target.id)


def cancel(
    ids: Sequence[str], *, cluster: str | None, signal: str | None, pending_only: bool
) -> tuple[str, ...]:
    """`scancel`; `-v` makes it say which jobs had already ended."""
    signals = ("-s", signal) if signal else ()
    # Tasks that have started since the row was read are to run on.
    states = ("--state=PENDING",) if pending_only else ()
    return ("-v", *_on(cluster), *signals, *states, *ids)


def control(verb: str, ids: Sequence[str], *, cluster: str | None) -> tuple[str, ...]:
    """`scontrol hold|release|requeue`."""
    return (*_on(cluster), verb, ",".join(ids))


def update(target: Target, changes: Mapping[str, str]) -> tuple[str, ...]:
    """`scontrol update JobId=… Field=Value …`."""
    pairs = (f"{name}={value}" for name, value in changes.items())
    return (*_on(target.cluster), "update", f"JobId={action_id(target)}", *pairs)


def submit(
    options: Sequence[str], script: str, arguments: Sequence[str], *, cluster: str | None
) -> tuple[str, ...]:
    """`sbatch`; the options of the program's own come first, so that the user's win."""
    return ("--parsable", *_on(cluster), *options, script, *arguments)


def write_script(target: Target) -> tuple[str, ...]:
    """`scontrol write batch_script ID -`: the script on standard output."""
    return (*_on(target.cluster), "write", "batch_script", record_id(target), "-")


def stored_script(target: Target, since: str | None) -> tuple[str, ...]:
    """`sacct -B`: the script that accounting has kept."""
    start = ("-S", since) if since else ()
    return (*_on(target.cluster), "-B", "-j", record_id(target), *start)


def accounting(
    ids: Sequence[str], names: Sequence[str], *, clusters: Sequence[str], since: str | None
) -> tuple[str, ...]:
    """`sacct` for allocations (`-X`) with every run of a requeued job (`-D`)."""
    where = ("-M", ",".join(clusters)) if clusters else ()
    start = ("-S", since) if since else ()
    form = ("-n", "-P", f"--delimiter={FIELD_END}", "-o", ",".join(names))
    return (*where, "-X", "-D", *form, *start, "-j", ",".join(ids))


def priority(target: Target, form: str) -> tuple[str, ...]:
    """`sprio` for one job."""
    return (*_on(target.cluster), "-h", "-o", form, "-j", plain_id(target))


def partitions(form: str, clusters: Sequence[str]) -> tuple[str, ...]:
    """`sinfo` by partition."""
    where = ("-M", ",".join(clusters)) if clusters else ()
    return (*where, "-h", "-o", form)


def nodes(form: str, clusters: Sequence[str]) -> tuple[str, ...]:
    """`sinfo -N`: a row for each node in each partition."""
    where = ("-M", ",".join(clusters)) if clusters else ()
    return (*where, "-h", "-a", "-N", "-O", form)


def step_usage(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """`sstat` for all steps of a running job, sizes in bytes."""
    form = ("-a", "-n", "-P", "--noconvert", "-o", ",".join(names))
    return (*_on(target.cluster), *form, "-j", plain_id(target))


def shell(target: Target, node: str | None, command: Sequence[str]) -> tuple[str, ...]:
    """`srun`: a step with a terminal inside a running job, beside what runs there (`--overlap`).

    `--mem=0` takes the job's memory as it is, instead of asking for the partition's default once more.
    A component of a het job is named by its group.
    """
    group = () if target.id.het_offset is None else (f"--het-group={target.id.het_offset}",)
    # srun takes plain numbers: a task by its own, a het job by its leader's.
    job = target.id.job if target.id.task is None else target.raw_id or target.id
    where = ("-w", node) if node else ()
    fixed = ("--overlap", "--pty", "-N1", "-n1", "--mem=0")
    return (*_on(target.cluster), f"--jobid={job}", *group, *fixed, *where, *command)
