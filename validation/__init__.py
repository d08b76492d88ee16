"""The hard disk model against drives of which every request was measured; `make validate`."""
