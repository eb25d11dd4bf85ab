"""The trainer and the templates."""
