"""What is done to jobs, for the screens and the one-shot commands alike."""
