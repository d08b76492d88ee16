"""What has to hold of any input whatever that Python reads: it is taken, or refused in one error.

The Rust parsers' counterpart is ``fuzz/oracles``. The fuzzer (``target.py``) calls these functions
with what it makes up, ``tests/test_fuzz_corpus.py`` with what the fuzzer has kept.
"""
