"""The TensorFlow trainer of tfjobtui.

It stands alone: it imports nothing of the program, and runs in an environment that has TensorFlow but not
the program. Importing the package, or asking `tfjob-train --help`, does not import TensorFlow.

Reading order: `train` (the command) → `options`, `recipes` → `attempt`, `lock` (the run folder) → `cluster`,
`peers` (several processes, and how they find each other) → `session` (one attempt from start to end) →
`devices`, `nodes`, `models`, `data`, `precision`, `optimizers` (what is trained, on what) → `engine`, `steps` (the
loop) → `agreement`, `stop` (how it ends) → `checkpoints`, `callbacks`, `telemetry`, `usage`, `state`, `report` (what
it leaves and says).
"""
