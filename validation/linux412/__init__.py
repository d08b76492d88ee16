"""cfq, deadline and noop against Linux 4.12.4 on a disk of constant service time."""
