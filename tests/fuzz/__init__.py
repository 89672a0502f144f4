"""A fuzzer of the command line: damaged argument lists and data files, each drawn again by number.

`python -m tests.fuzz --arguments 100000 --files 10000 --output fuzz.md` is the long run;
`test_fuzz.py` a short one.
"""
