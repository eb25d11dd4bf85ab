"""Widgets named after what the user sees."""
