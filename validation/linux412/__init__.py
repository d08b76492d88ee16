"""cfq, deadline and noop against what Linux 4.12.4 decided on a disk of constant service time."""
