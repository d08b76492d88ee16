"""``python -m blklab`` is the ``blklab`` command."""

from blklab.cli import main

if __name__ == "__main__":
    main()
