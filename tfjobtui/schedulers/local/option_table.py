"""Every option of sbatch: how its value is read, or why it is passed over on one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfjobtui.schedulers.local import moments
from tfjobtui.schedulers.local import option_values as values
from tfjobtui.schedulers.local.option_values import Reader, form, one_of, refused

SAME: Mapping[str, str] = {
    "no-requeue": "requeue",
    "ntasks-per-tres": "ntasks-per-gpu",
    "oversubscribe": "exclusive",
}
"""Options that say something about what another one names; of both the last counts."""

_GPU_SPEED = r"(?:(?:memory=)?(?:low|medium|highm1|high|\d+)|verbose)"
_CPU_SPEED = r"(?:(?:lo|hi|med|co|perf|pow|user|onde|sche)[a-z0-9]*|[1-9]\d*)"
_ADDRESSES = r"(?:map|mask)_?mem:[^,]+(?:,(?:0x)?[\da-f]+)*"
_MEMORY_BINDING = rf"(?:p|prefer|nosort|sort|q|quiet|v|verbose|no|none|rank|local|{_ADDRESSES})"
_STAGE = "Stage the files in the script."
_BY_READER: tuple[tuple[Reader, str], ...] = (
    (
        values.count,
        "cores-per-socket cpus-per-gpu cpus-per-task ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node"
        " ntasks-per-socket ntasks-per-tres sockets-per-node thread-spec threads-per-core",
    ),
    (values.count_or_zero, "core-spec mincpus"),
    (
        values.short_text,
        "comment constraint job-name licenses mail-user mcs-label network partition prefer qos reservation wckey",
    ),
    (values.lower_text, "account"),
    (values.size, "mem mem-per-cpu mem-per-gpu tmp"),
    (values.time_limit, "delay-boot time time-min"),
    (moments.moment_s, "begin deadline"),
    (values.yes, "hold overcommit parsable test-only wait ignore-pbs"),
    (values.no, "no-requeue oversubscribe"),
    (values.file_name, "error input output"),
    (values.gpus, "gpus gpus-per-node gpus-per-socket gpus-per-task"),
    (values.gres, "gres"),
    (values.tres_per_task, "tres-per-task"),
    (values.nodes, "nodes"),
    (values.array, "array"),
    (values.dependency, "dependency"),
    (values.limit_signal, "signal"),
    (values.exclusive, "exclusive"),
    (values.nice, "nice"),
    (values.open_mode, "open-mode"),
    (values.clusters, "clusters"),
    (values.mail_type, "mail-type"),
    (values.propagate, "propagate"),
    (values.distribution, "distribution"),
    (values.threads, "extra-node-info"),
    (values.requeue, "requeue"),
    (one_of("yes", "no"), "kill-on-invalid-dep"),
    (one_of("", "set", "off", "no"), "no-kill"),
    (one_of("0", "1"), "wait-all-nodes"),
    (one_of("compute_bound", "memory_bound", "multithread", "nomultithread"), "hint"),
    (form(r"(?:(?:dis|en)able|enforce|one-|multiple-)[a-z,-]+", "enforce-binding"), "gres-flags"),
    (form(r".*(?:none|all|energy|task|lustre|filesystem|network).*", "none"), "profile"),
    (form(r"[a-z]*=?\d+(?:,[a-z]*=?\d+)*", "task=30"), "acctg-freq"),
    (form(r"\d+(?:@.*)?", "1@10"), "switches"),
    (form(r"(?:\d+[sl]?)?", "10"), "get-user-env"),
    (form(r"(?:verbose,)?(?:c|n|map_gpu:|mask_gpu:|per_task:\d|single:\d).*", "closest"), "gpu-bind"),
    (form(rf"{_GPU_SPEED}(?:,{_GPU_SPEED})*", "high"), "gpu-freq"),
    (form(rf"{_CPU_SPEED}(?:[-:]{_CPU_SPEED}){{0,2}}", "high"), "cpu-freq"),
    (form(rf"{_MEMORY_BINDING}(?:,{_MEMORY_BINDING})*", "local"), "mem-bind"),
    (refused("burst buffers need Slurm", _STAGE), "bb bbf"),
    (refused("containers are not started here", "Start it in the script."), "container"),
    (refused("it is not read here", "Set the variables in the script, or by --export."), "export-file"),
    (refused("what others start needs Slurm"), "external"),
    (refused("only permitted by root user", "Leave it out: the job is yours."), "gid uid"),
    (refused("rebooting of nodes is only allowed for admins", "Leave it out."), "reboot"),
)


def _readers() -> Iterator[tuple[str, Reader]]:
    for reader, names in _BY_READER:
        for name in names.split():
            yield name, reader


READERS: Mapping[str, Reader] = dict(_readers())
"""How an option's value is read; the others' is kept as it is."""

PASSED_OVER: Mapping[str, str] = {
    "cluster-constraint": "there is one machine here",
    "constraint": "this machine has no features to choose nodes by",
    "container-id": "containers are not started here",
    "container-type": "containers are not started here",
    "core-spec": "no CPUs are kept for the system here",
    "cpu-freq": "the frequency of CPUs is not changed here",
    "exclude": "there is one node here",
    "get-user-env": "the job gets the environment of its submission",
    "gpu-freq": "the frequency of GPUs is not changed here",
    "licenses": "licences are not counted here",
    "mail-type": "no mail is sent from here",
    "network": "it has no meaning on one machine",
    "nodefile": "there is one node here",
    "nodelist": "there is one node here",
    "prefer": "this machine has no features to choose nodes by",
    "profile": "no profile is recorded here",
    "propagate": "a job has the limits (ulimit) of the program that starts it",
    "reservation": "there are no reservations here",
    "resources": "this machine's own are used",
    "resv-ports": "no ports are set aside here",
    "thread-spec": "no CPUs are kept for the system here",
    "tmp": "free space in /tmp is not looked at",
}
"""Options that could have changed the run, and why they do not here."""

WITHOUT_EFFECT = frozenset(
    """
    acctg-freq autocomplete batch chdir consolidate-segments contiguous context delay-boot export extra gpu-bind
    gres-flags help hint ignore-pbs mail-user mcs-label mem-bind mem-update no-kill oom-kill-step power priority
    quiet segment spread-job spread-segments stepmgr switches tres-bind usage use-min-nodes verbose version
    wait-all-nodes wckey wrap
    """.split()
)
"""Options that change nothing on one machine of one user, or whose text is taken as it is."""
