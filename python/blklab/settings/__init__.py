"""Make a scheduler and its settings permanent for a disk, check that they hold, and undo them.

`choice` parses the settings, `keys` identifies the disks, `rule` writes udev's rule, `profile`
tuned's profile, `rivals` finds conflicting rules and services, `record` stores the previous state,
`change` applies and reverts.
"""
