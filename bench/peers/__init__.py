"""medproc beside six other ways to make the same calls; run `python -m bench.peers`.

Each peer is one module with a function `run`, and runs in a process of its own.
"""
