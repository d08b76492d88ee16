"""Shared by every layer: text, files, homes, limits, and leftovers of killed processes.

Nothing here depends on disks, schedulers or experiments.
"""
