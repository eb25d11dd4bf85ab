"""The embedded scheduler: runs batch scripts on this machine as Slurm would, without a daemon.

How it works, from a submission to the end:

1. `options` reads the script's `#SBATCH` lines, the environment and the command line into a `JobRequest`;
   `store` writes the job's folder (script, environment) and then one row into an SQLite file (`place` says
   where: one folder for each machine, 0700).
2. `dispatch.make_pass` is the only place that starts jobs. Whoever changes something makes a pass: a
   submission, a job's end, a program that looks, the waiter. One transaction reads the rows, `planning`
   says what starts and why the rest waits, and each job that starts gets a new token. Then a shepherd is
   started for each.
3. The shepherd (`shepherd`) is the parent of the job's script and lives as long as it. It takes the job over
   by its token (one row can be taken over once), prepares a record for the end (`journal`, allocated
   beforehand, so that a full disk cannot lose it), starts the script, keeps its limits, listens to requests
   (`channel`), samples what the job uses (`usage`), writes the end and makes a pass.
4. A shepherd that is gone without an end is found by the next pass: what is left of its job is found by the
   token in the environment and ended (`leftovers`), and the job is NODE_FAIL, or waits again if it asked for
   that. A process is known by boot id, pid and start ticks (`identity`), never by its pid alone.
5. The waiter (`waiter`) makes passes for as long as jobs wait or run, so that a begin time comes and a dead
   shepherd is noticed while no program is open. Nothing depends on it: there is at most one, and any pass
   starts it again.

Inside a job, and for the user through `tfjobtui local COMMAND`, `commands` has sbatch, srun, scontrol, squeue,
scancel, sacct, sstat and sinfo, as far as scripts use them.
"""
