"""One run, process by process: what was asked, when the disk had it, what the scheduler decided."""
