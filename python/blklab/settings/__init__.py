"""Make a scheduler and its settings stick to a disk, see whether they hold, and undo it.

`choice` says what is to be set, `keys` which disks are meant, `rule` writes udev's rule,
`profile` tuned's, `rivals` finds what would undo it, `record` keeps what was before, `change`
does it and takes it back.
"""
