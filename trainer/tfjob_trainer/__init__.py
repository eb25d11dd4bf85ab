"""The TensorFlow trainer of tfjobtui.

It stands alone: it imports nothing of the program, and runs in an environment that has TensorFlow but not
the program. Importing the package, or asking `tfjob-train --help`, does not import TensorFlow.

Reading order: `train` (the command) → `options` → `attempt` (the run folder) →
`session` (one attempt from start to end) → `devices`,
`models`, `data`, `precision` (what is trained, on what) → `engine` (the loop) → `checkpoints`, `callbacks`,
`telemetry`, `state`, `stop` (what it leaves, and how it ends).
"""
