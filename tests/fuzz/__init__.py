"""A fuzzer of the command line: argument lists and data files as nobody should write them, drawn by
number, so that each can be drawn again.

`python -m tests.fuzz --arguments 100000 --files 10000 --output fuzz.md` is the long run;
`test_fuzz.py` a short one.
"""
