"""The hard disk model against drives with a measurement of every request; `make validate`."""
