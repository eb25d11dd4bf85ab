"""One module for each screen and dialog, its style sheet beside it."""
