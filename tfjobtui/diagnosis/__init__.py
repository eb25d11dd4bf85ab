"""Why a job waits and how it ended, in words: rules in tables."""
