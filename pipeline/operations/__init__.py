"""What operators and the scheduler do: submit, retry, cancel, pause, preview, periodic tasks."""
