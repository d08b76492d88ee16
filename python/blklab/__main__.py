"""``python -m blklab`` is the ``blklab`` command."""

from blklab.start import main

if __name__ == "__main__":
    main()
