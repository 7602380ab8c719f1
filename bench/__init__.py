"""Benchmarks; run one with `python -m bench.NAME`, all of them with `make bench`."""
