"""Watching the queue: when to ask, what has changed, and the view on it."""
