"""Real disks of this machine: every change to them is undone, whatever happens."""
