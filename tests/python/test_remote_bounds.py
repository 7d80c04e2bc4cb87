# SPDX-License-Identifier: Apache-2.0
"""Servers that hang or never end: Ctrl-C ends the call at once, and every answer is bounded."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

import halfscope
from hostile_servers import hostile, wait_for
from log_inputs import CORPUS

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

CALL = "import halfscope, sys; halfscope.{}(sys.argv[1])"


@pytest.mark.parametrize("function", ["count", "recommend"])
@pytest.mark.parametrize("kind", ["silent", "slow_page", "silent_ranges", "silent_bytes"])
def test_one_interrupt_ends_the_program(kind, function):
    with hostile(kind) as server:
        program = subprocess.Popen([sys.executable, "-c", CALL.format(function), server.url],
                                   stderr=subprocess.PIPE, text=True)
        try:
            wait_for(server, ranges=kind in ("silent_ranges", "silent_bytes"))
            time.sleep(0.5)
            begun = time.monotonic()
            program.send_signal(signal.SIGINT)
            told = program.communicate(timeout=10)[1]
            assert time.monotonic() - begun < 2
        finally:
            program.kill()
        assert told.rstrip().endswith("KeyboardInterrupt"), told


@pytest.fixture
def limits(monkeypatch):
    monkeypatch.setattr("halfscope._remote._PAUSES", (0, 0))
    for name, value in (("LISTING_SECONDS", 3), ("LISTING_PAGES", 20), ("ANSWER_SECONDS", 2),
                        ("SILENT_SECONDS", 1)):
        monkeypatch.setattr(f"halfscope._bounds.{name}", value)


@pytest.mark.parametrize("kind, said", [
    ("silent", "the server does not answer in time; try again later, or copy it and name the copy"),
    ("slow_page", "the server does not answer in time; try again later"),
    ("endless_page", "its listing is longer than 64 MiB; name a folder with fewer files"),
    ("endless_folders", "its listing has more than 20 pages; name a folder with fewer files"),
    ("packed_page", "the server packs its answer (gzip), which was asked for as it is; copy it"),
    ("silent_ranges", "do not arrive ("),
    ("silent_bytes", "do not arrive ("),
    ("slow_bytes", "do not arrive ("),
    ("endless_file", "its server gives no ranges: copy it and name the copy"),
    ("bomb", "the server packs its answer (gzip), which was asked for as it is; copy it")])
def test_what_never_ends_is_an_error(kind, said, limits):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    with hostile(kind) as server:
        with pytest.raises(halfscope.BadInput) as error:
            halfscope.count(server.url)
        assert str(error.value).startswith(server.url) and said in str(error.value)
        assert time.monotonic() - begun < 20
        assert server.sent < 1 << 29  # eight requests at once, and what was on its way
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < 1 << 30


def test_a_page_that_cannot_be_listed_is_no_empty_folder(tmp_path, monkeypatch):
    """A folder below it that fails is an error, not a log without its files."""
    from range_server import serve

    (tmp_path / "log" / "below").mkdir(parents=True)
    (tmp_path / "log" / "a.txt").write_text("x")
    with serve(tmp_path) as server:
        from range_server import _Handler

        def broken(handler):
            if handler.path.endswith("/below/"):
                return handler._send(404, b"none")
            return handler.answer()
        monkeypatch.setattr(_Handler, "answer", _Handler.do_GET, raising=False)
        monkeypatch.setattr(_Handler, "do_GET", broken)
        with pytest.raises(halfscope.BadInput, match="no such path; check the URL"):
            halfscope.count(f"{server.url}/log/")


SECRETS = ("hunter2", "tail9")


@pytest.mark.parametrize("url", [
    "http://me:hunter2?tail9@127.0.0.1:1/", "http://me:hunter2/tail9@127.0.0.1:1/x",
    "http://me:hunter2#tail9@127.0.0.1:1/x", "http://me:hunter2@tail9@127.0.0.1:1/x",
    "http://me:12?hunter2tail9@h/", "https://hunter2/tail9@127.0.0.1:1/x",
    "http://hunter2?tail9@127.0.0.1:1/", "http://me:'hunter2 tail9'@127.0.0.1:1/x",
    "http://127.0.0.1:1/x?X-Amz-Signature=hunter2@tail9", "http://127.0.0.1:1/x?sig=hunter2#tail9",
    "http://127.0.0.1:1/x#token=hunter2/tail9", "ftp://me:hunter2?tail9@127.0.0.1:1/x",
    "s3://key:hunter2/tail9@bucket/x", "foo://me:hunter2?tail9@h/x", "http://me:hunter2?tail9@[x/",
    "http://me:hunter2", "http://me:hunter2/x", "//me:hunter2@h", "http:/me:hunter2@h/",
    "sftp://me:hunter2/tail9@127.0.0.1:1/x", "http://me:hunter2%3Ftail9@127.0.0.1:1/x"])
def test_no_part_of_a_secret_is_in_a_message(url, monkeypatch, request):
    if url.startswith("s3"):
        s3fs = pytest.importorskip("s3fs")
        s3fs.S3FileSystem.clear_instance_cache()  # it keeps its endpoint
        request.addfinalizer(s3fs.S3FileSystem.clear_instance_cache)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for call in (halfscope.count, halfscope.recommend, halfscope.policies, halfscope.report,
                 halfscope.Counts.load, lambda url: halfscope.compare(url, url)):
        with pytest.raises((halfscope.BadInput, ImportError)) as error:
            call(url)
        assert not any(secret in str(error.value) for secret in SECRETS), str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("url", ["http://me:hunter2?tail9@h/x", "//me:hunter2@tail9", "http:/me:hunter2@h/tail9",
                                 "s3:/me:hunter2@h", "http://me:hunter2", "https:///me:hunter2@h/"])
def test_the_program_names_no_part_of_a_secret(url):
    program = os.environ.get("HALFSCOPE_PROGRAM")
    if not program:
        pytest.skip("HALFSCOPE_PROGRAM is not set")
    told = subprocess.run([program, "analyze", url], capture_output=True, text=True).stderr
    assert told.count("\n") == 1 and not any(secret in told for secret in SECRETS)


def test_a_path_with_an_at_sign_keeps_its_name(tmp_path):
    from range_server import serve

    (tmp_path / "a@b").mkdir()
    shutil.copy(CORPUS / "megatron.txt", tmp_path / "a@b" / "log.txt")
    with serve(tmp_path) as server:
        assert list(halfscope.count(f"{server.url}/a@b/log.txt?token=hunter2").logs) == [
            f"{server.url}/a@b/log.txt"]


def test_a_missing_package_is_named(monkeypatch):
    """As fsspec has it: its error comes from that of the import."""
    monkeypatch.setitem(sys.modules, "paramiko", None)
    with pytest.raises(ImportError) as error:
        halfscope.count("sftp://me:hunter2@127.0.0.1:1/x")
    assert str(error.value) == ("sftp://127.0.0.1:1/x needs paramiko; install it with pip install "
                                "paramiko")
    assert error.value.__suppress_context__


def test_redirects_without_end_are_named(tmp_path, monkeypatch):
    from range_server import _Handler, serve

    def around(handler):
        handler.send_response(302)
        handler.send_header("Location", handler.path)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    with serve(tmp_path) as server:
        monkeypatch.setattr(_Handler, "do_GET", around)
        monkeypatch.setattr(_Handler, "do_HEAD", around)
        with pytest.raises(halfscope.BadInput) as error:
            halfscope.count(f"{server.url}/log")
    assert str(error.value) == f"{server.url}/log: the server redirects without end; check the URL"
