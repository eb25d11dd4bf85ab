"""Why jobs wait: every reason that Slurm has, and the texts that it writes in place of one."""

from __future__ import annotations

import dataclasses

import pytest

from tfjobtui.diagnosis import reasons
from tfjobtui.diagnosis.waiting import dependency_in_words, explain
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import JobDetails

_NAMES = """
None Prolog Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown
PartitionInactive JobHeldAdmin JobHeldUser NvidiaImexChannels BeginTime Licenses AssociationJobLimit
AssociationResourceLimit AssociationTimeLimit Reservation ReqNodeNotAvail SchedDefer NodeDown
BadConstraints SystemFailure JobLaunchFailure NonZeroExitCode RaisedSignal TimeLimit InactiveLimit
InvalidAccount InvalidQOS QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit Cleaning
QOSNotAllowed AccountNotAllowed DependencyNeverSatisfied QOSGrpCpuLimit QOSGrpCPUMinutesLimit
QOSGrpCPURunMinutesLimit QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpSubmitJobsLimit
QOSGrpWallLimit QOSMaxCpuPerJobLimit QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit
QOSMaxWallDurationPerJobLimit QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit
QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied AssocGrpCpuLimit AssocGrpCPUMinutesLimit
AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpSubmitJobsLimit
AssocGrpWallLimit AssocMaxJobsLimit AssocMaxCpuPerJobLimit AssocMaxCpuMinutesPerJobLimit
AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit AssocMaxSubmitJobLimit JobHoldMaxRequeue
JobArrayTaskLimit BurstBufferResources BurstBufferStageIn BurstBufferOperation AssocGrpUnknown
AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocMaxUnknownPerJob AssocMaxUnknownPerNode
AssocMaxUnknownMinutesPerJob AssocMaxCpuPerNode AssocGrpMemMinutes AssocGrpMemRunMinutes
AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxMemMinutesPerJob AssocGrpNodeMinutes AssocGrpNodeRunMinutes
AssocMaxNodeMinutesPerJob AssocGrpEnergy AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes
AssocMaxEnergyPerJob AssocMaxEnergyPerNode AssocMaxEnergyMinutesPerJob AssocGrpGRES AssocGrpGRESMinutes
AssocGrpGRESRunMinutes AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxGRESMinutesPerJob AssocGrpLicense
AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocMaxLicensePerJob AssocMaxLicenseMinutesPerJob
AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocMaxBBPerJob AssocMaxBBPerNode
AssocMaxBBMinutesPerJob QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes QOSMaxUnknownPerJob
QOSMaxUnknownPerNode QOSMaxUnknownPerUser QOSMaxUnknownMinutesPerJob QOSMinUnknown QOSMaxCpuPerNode
QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSMaxMemoryPerJob QOSMaxMemoryPerNode QOSMaxMemoryPerUser
QOSMaxMemoryMinutesPerJob QOSMinMemory QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSMaxNodeMinutesPerJob
QOSMinNode QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSMaxEnergyPerJob
QOSMaxEnergyPerNode QOSMaxEnergyPerUser QOSMaxEnergyMinutesPerJob QOSMinEnergy QOSGrpGRES
QOSGrpGRESMinutes QOSGrpGRESRunMinutes QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser
QOSMaxGRESMinutesPerJob QOSMinGRES QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes
QOSMaxLicensePerJob QOSMaxLicensePerUser QOSMaxLicenseMinutesPerJob QOSMinLicense QOSGrpBB
QOSGrpBBMinutes QOSGrpBBRunMinutes QOSMaxBBPerJob QOSMaxBBPerNode QOSMaxBBPerUser QOSMinBB DeadLine
MaxBBPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxNodePerAccount
MaxLicensePerAccount MaxMemoryPerAccount MaxUnknownPerAccount MaxJobsPerAccount MaxSubmitJobsPerAccount
PartitionConfig AccountingPolicy FedJobLock OutOfMemory MaxMemPerLimit AssocGrpBilling
AssocGrpBillingMinutes AssocGrpBillingRunMinutes AssocMaxBillingPerJob AssocMaxBillingPerNode
AssocMaxBillingMinutesPerJob QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes
QOSMaxBillingPerJob QOSMaxBillingPerNode QOSMaxBillingPerUser QOSMaxBillingMinutesPerJob
MaxBillingPerAccount QOSMinBilling ReservationDeleted ReservationInvalid Constraints
MaxBBRunMinsPerAccount MaxBillingRunMinsPerAccount MaxCpuRunMinsPerAccount MaxEnergyRunMinsPerAccount
MaxGRESRunMinsPerAccount MaxNodeRunMinsPerAccount MaxLicenseRunMinsPerAccount MaxMemoryRunMinsPerAccount
MaxUnknownRunMinsPerAccount MaxBBRunMinsPerUser MaxBillingRunMinsPerUser MaxCpuRunMinsPerUser
MaxEnergyRunMinsPerUser MaxGRESRunMinsPerUser MaxNodeRunMinsPerUser MaxLicenseRunMinsPerUser
MaxMemoryRunMinsPerUser MaxUnknownRunMinsPerUser MaxPoweredUpNodes MpiPortsBusy FrontEndDown
BlockMaxError BlockFreeAction PowerNotAvail PowerReserved WaitingForScheduling
"""
REASONS = _NAMES.split()

JOB = Job(JobId(7), "7", 7, "train", JobState.PENDING, "PENDING", "u")


def waiting(reason: str, job_id: str = "7", **more: object) -> Job:
    return dataclasses.replace(JOB, id=JobId.parse(job_id), reason=reason, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_a_meaning_and_an_advice(reason: str) -> None:
    found = explain(waiting(reason))
    assert found.word == reason
    assert "The scheduler says" not in found.meaning
    assert found.meaning.endswith(".")
    assert found.advice
    assert "{" not in found.meaning + found.advice


def test_the_table_has_no_name_that_slurm_has_not() -> None:
    assert set(reasons.REASONS) <= set(REASONS)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("QOSGrpGRES", ["group limit", "QOS", "GPUs", "is reached"]),
        ("AssocGrpCPUMinutesLimit", ["budget", "your account", "CPUs × minutes"]),
        ("AssocGrpCPURunMinutesLimit", ["group limit", "CPUs × remaining minutes of running jobs"]),
        ("QOSMaxGRESPerUser", ["Your own jobs together", "GPUs"]),
        ("MaxMemoryPerAccount", ["Your account's jobs together", "memory"]),
        ("QOSMaxCpuPerNode", ["more per node", "CPUs"]),
        ("QOSMaxWallDurationPerJobLimit", ["wall time", "for one job"]),
        ("AssocMaxSubmitJobLimit", ["Your own jobs together", "submitted jobs"]),
        ("QOSMinGRES", ["less than the minimum", "GPUs"]),
        ("MaxGRESRunMinsPerUser", ["Your own jobs together", "GPUs", "remaining minutes"]),
        ("MaxMemPerLimit", ["memory per CPU or node"]),
        ("AssocGrpWallLimit", ["total wall time"]),
        ("QOSMaxUnknownMinutesPerJob", ["some resource × minutes", "for one job"]),
    ],
)
def test_limits_are_told_from_the_parts_of_their_names(reason: str, words: list[str]) -> None:
    meaning = explain(waiting(reason)).meaning
    for word in words:
        assert word in meaning


def test_commands_name_the_job_fit_for_a_shell() -> None:
    assert "scontrol release 7" in explain(waiting("JobHeldUser")).advice
    assert "scontrol release '7_[1-4]'" in explain(waiting("JobHeldUser", "7_[1-4%2]")).advice
    assert "JobId=7 ArrayTaskThrottle" in explain(waiting("JobArrayTaskLimit", "7_[1-4%2]")).advice


@pytest.mark.parametrize(
    ("reason", "start", "rest"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", "A node that it needs", "not available: n[1-3]"),
        ("ReqNodeNotAvail,_UnavailableNodes:n1", "A node that it needs", "not available: n1"),
        ("ReqNodeNotAvail, Reserved for maintenance", "A node that it needs", "Reserved for maintenance"),
        ("(ReqNodeNotAvail, May be reserved for other job)", "A node that it needs", "May be reserved"),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            "The nodes that it needs are down",
            "",
        ),
        ("launch failed requeued held", "It could not be launched", ""),
        ("launch_failed_requeued_held", "It could not be launched", ""),
        ("user env retrieval failed requeued held", "Your environment could not be read", ""),
        ("job requeued in held state", "It was put back into the queue", ""),
        (
            "Reservation maint, which this job was running under, has ended",
            "The reservation",
            "Reservation maint",
        ),
        (
            "uid 1000 not in group permitted to use this partition (p). groups allowed: g",
            "You are not in a group",
            "groups allowed: g",
        ),
        ("RaisedSignal:53(Real-time_signal_19)", "A signal ended it", "53(Real-time_signal_19)"),
    ],
)
def test_free_text_is_understood_by_how_it_begins(reason: str, start: str, rest: str) -> None:
    found = explain(waiting(reason))
    assert found.meaning.startswith(start)
    assert rest in found.meaning
    assert found.advice


def test_merged_reasons_of_an_array_are_all_told() -> None:
    found = explain(waiting("Priority,JobArrayTaskLimit", "7_[1-4%2]"))
    assert "higher priority" in found.meaning
    assert "%N" in found.meaning
    assert "ArrayTaskThrottle" in found.advice


def test_an_unknown_reason_is_shown_as_it_is_and_harmless() -> None:
    found = explain(waiting("SomethingNew: \x1b[31mred"))
    assert "SomethingNew" in found.meaning
    assert "\x1b" not in str(found) + found.word
    assert found.advice == ""


def test_a_reason_that_begins_like_a_known_one_is_not_taken_for_it() -> None:
    assert "The scheduler says" in explain(waiting("PriorityBoost")).meaning


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobState.CONFIGURING, "booting"),
        (JobState.REQUEUE_HOLD, "held"),
        (JobState.SPECIAL_EXIT, "special exit"),
        (JobState.REQUEUED, "put back"),
    ],
)
def test_a_state_that_waits_tells_why_without_a_reason(state: JobState, words: str) -> None:
    assert words in explain(waiting("None", state=state, state_text=state.long)).meaning


def test_the_dependency_is_spelled_out_from_the_queue_or_the_details() -> None:
    job = waiting("Dependency", dependency="afterok:12_*(unfulfilled)")
    assert "all tasks of job 12 to end well" in explain(job).meaning
    details = JobDetails(job.id, (("Dependency", "afterany:13(failed)"),))
    assert "job 13 to end (failed)" in explain(job, details).meaning
    assert "Dependency=" in explain(job).advice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("afterok:12:13", "It waits for job 12 and job 13 to end well."),
        (
            "afterok:12_*(unfulfilled),afterany:13(failed)",
            "all tasks of job 12 to end well and job 13 to end (failed)",
        ),
        ("afterok:12?afternotok:13", "job 12 to end well or job 13 to fail"),
        ("singleton(unfulfilled)", "earlier jobs of the same name to end"),
        ("after:12+5", "job 12 (and 5 minutes more) to have started"),
        ("brandnew:12", "brandnew:12"),
        ("", ""),
    ],
)
def test_dependencies_in_words(text: str, words: str) -> None:
    assert words in dependency_in_words(text)


def test_a_burst_buffers_trouble_brings_its_comment() -> None:
    job = waiting("BurstBufferOperation")
    details = JobDetails(job.id, (("SystemComment", "stage-in failed: no space"),))
    assert "no space" in explain(job, details).meaning
