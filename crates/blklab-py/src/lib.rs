//! Python binding of blklab-core: texts in, JSON and columns out. No logic of its own.
