"""Files of measurements that are no such thing: named, never a crash."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

from tco import DataError
from tco.validation.measured import LARGEST_FILE
from tests.validation.today import read_measured

ROOT = Path(__file__).parents[2]
HEADER = "accelerator,op,n_gpus,message_size_bytes,time_us\n"


def test_a_packed_file_reads_as_the_plain_one(tmp_path):
    packed = ROOT / "data/measured/collectives.csv.gz"
    plain = tmp_path / "plain.csv"
    with gzip.open(packed) as source, plain.open("wb") as target:
        shutil.copyfileobj(source, target)
    (kind, a), (plain_kind, b) = read_measured(packed), read_measured(plain)
    assert kind == plain_kind == "collectives"
    assert a.equals(b)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"x,y\n1,2\n", "fits no kind"),
        ("a.csv", HEADER.encode(), "no row"),
        (
            "a.csv",
            (HEADER + "H100 SXM,all_reduce,8,1024,12 ms\n").encode(),
            "a.csv:2: time_us is '12 ms', expected microseconds",
        ),
        (
            "a.csv",
            (HEADER + "H100 SXM,all_reduce,8,1e999,12\n").encode(),
            "a.csv:2: message_size_bytes is '1e999', expected bytes",
        ),
        ("a.csv", b"\0\0", "NUL"),
        ("a.csv", b"\xff\xfe" + HEADER.encode(), "UTF-8"),
        ("a.csv.gz", b"plain text", "gzip"),
        ("a.csv.gz", gzip.compress(HEADER.encode(), mtime=0)[:-12], "gzip"),
    ],
)
def test_a_bad_file_is_named(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.csv") as error:
        read_measured(path)
    assert says in str(error.value)


def test_a_pipe_is_named_as_one(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"is a pipe, .*; save its content to one"):
        read_measured(tmp_path / "a.csv")


@pytest.mark.parametrize(("name", "opened"), [("a.csv", open), ("a.csv.gz", gzip.open)])
def test_a_huge_file_is_refused_unread(tmp_path, name, opened):
    """A packed file is as large as what it unpacks to: here 200 times."""
    path, block = tmp_path / name, b"accelerator,op,dtype\n" * 50_000
    with opened(path, "wb", **({"compresslevel": 1} if opened is gzip.open else {})) as stream:
        for _ in range(LARGEST_FILE // len(block) + 1):
            stream.write(block)
    with pytest.raises(DataError, match="MiB"):
        read_measured(path)
