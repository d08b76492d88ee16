"""The properties of any input that Python reads: it is accepted, or refused with one error.

The counterpart of the Rust parsers is ``fuzz/oracles``. The fuzzer (``target.py``) calls these
functions with generated inputs, ``tests/test_fuzz_corpus.py`` with stored inputs.
"""
