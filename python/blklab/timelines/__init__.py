"""One run, process by process: its requests, their service, and the scheduler's decisions."""
