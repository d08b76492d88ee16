"""Real disks of this machine: every change to them is undone, even after a crash."""
