"""Tasks on the workers of Dask.

Dask connects machines, starts workers and moves tasks of workers that end. blklab decides three
things: which workers may run (`workers.py`: only those with this code), how many runs go in one
message (`batches.py`: about a second of them, the longest first), and what happens when the
scheduler is lost (`executor.py`: it connects again, and sends what has no result yet).

`address.py` reads what the user names, `connection.py` connects. `worker.py` is the only file of
which functions run elsewhere.
"""
