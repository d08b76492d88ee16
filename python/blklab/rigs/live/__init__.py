"""Real disks of this machine: what is done to them, so that it is undone whatever happens."""
