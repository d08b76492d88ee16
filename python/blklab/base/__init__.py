"""What every layer may use: text, files, homes, limits, and what a killed process leaves behind.

Nothing here knows of disks, schedulers or experiments.
"""
