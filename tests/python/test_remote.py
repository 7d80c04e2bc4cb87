# SPDX-License-Identifier: Apache-2.0
"""Logs at URLs: counted as their copies are, by ranges, and without a word of credentials."""

import os
import pathlib
import re
import shutil
import sys

import numpy as np
import pytest

import halfscope
from log_inputs import CORPUS
from program import DIGITS, run
from range_server import serve

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
from safetensors.numpy import save_file  # noqa: E402

SECRET = "very-secret"
MIB = 1 << 20


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Logs of many kinds in a folder."""
    folder = tmp_path_factory.mktemp("logs")
    numbers = np.random.default_rng(3)
    (folder / "dumps").mkdir()
    for step in range(3):
        values = {f"weight_grad/layer{i}": numbers.standard_normal(size).astype(np.float32) * 2**-20
                  for i, size in enumerate((12 * MIB // 4, 1000, 9 * MIB // 4 + 1))}
        save_file(values, folder / "dumps" / f"step-{step}.safetensors")
    run("simulate", "mlp", "--steps", 4, "--batch", 4, "--out", folder / "ranks" / "rank-0000")
    for name in ("megatron.txt", "folder-two-runs"):
        source = CORPUS / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    shutil.copytree(DIGITS, folder / "digits")
    np.savez_compressed(folder / "packed.npz", **{"weight_grad/a": np.float32([1e-9, 1.0])})
    return folder


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("halfscope._remote._PAUSES", (0, 0))


LOGS = ("dumps", "dumps/step-1.safetensors", "ranks", "megatron.txt", "folder-two-runs", "digits",
        "packed.npz")


@pytest.fixture(scope="module")
def web(logs):
    with serve(logs) as server:
        yield server


@pytest.fixture(scope="module")
def bucket(logs):
    """The URL of a bucket of a real S3 server, with the logs in it."""
    pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "a-key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
        import fsspec

        store = fsspec.filesystem("s3")
        store.mkdir("logs")
        for file in filter(pathlib.Path.is_file, sorted(logs.rglob("*"))):
            store.pipe_file(f"logs/{file.relative_to(logs)}", file.read_bytes())
        yield "s3://logs"
    server.stop()


def answer(log, tmp_path, *command, called=None):
    """What the program says of counts, as text."""
    halfscope.count(log).save(tmp_path / "counts.hst")
    text = run(*command, tmp_path / "counts.hst", "--json", "-")[0]
    return text.replace(os.fspath(log), called) if called else text


@pytest.mark.parametrize("name", LOGS)
def test_a_log_in_a_bucket_is_counted_as_its_copy(name, logs, bucket, tmp_path):
    url = f"{bucket}/{name}"
    assert (answer(url, tmp_path, "analyze") ==
            answer(logs / name, tmp_path, "analyze", called=url))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_a_web_server_is_counted_as_its_copy(name, logs, web, tmp_path):
    url = f"{web.url}/{name}" + "/" * (logs / name).is_dir()
    assert (answer(url, tmp_path, "recommend") ==
            answer(logs / name, tmp_path, "recommend", called=url.rstrip("/")))


def test_ranks_add_up_to_their_run(logs, web, bucket):
    for url in (f"{web.url}/ranks", f"{bucket}/ranks"):
        counts = halfscope.count(f"{url}/rank-0000/")
        assert list(counts.logs) == [url] and counts == halfscope.count(f"{url}/")


def test_a_folder_of_a_web_server_needs_no_slash(web):
    assert halfscope.count(f"{web.url}/dumps") == halfscope.count(f"{web.url}/dumps/")


def test_keys_that_are_no_file_names_are_left_out(bucket, caplog):
    import fsspec

    store = fsspec.filesystem("s3")
    text = (CORPUS / "megatron.txt").read_bytes()
    for key in ("a.txt", "a.txt/b", "n" * 300):
        store.pipe_file(f"logs/clash/{key}", text)
    assert halfscope.count(f"{bucket}/clash").logs
    assert "cannot be a file here (File name too long), and is left out" in caplog.text


def test_an_interrupt_while_bytes_are_awaited_ends_the_call(web, monkeypatch):
    def interrupted(file, begin, end):
        raise KeyboardInterrupt
    monkeypatch.setattr("halfscope._remote._File.need", interrupted)
    with pytest.raises(KeyboardInterrupt):
        halfscope.count(f"{web.url}/dumps")


def test_every_function_takes_urls(web, logs):
    url = f"{web.url}/digits/"
    assert halfscope.analyze(url).logs == [url.rstrip("/")]
    found, expected = (halfscope.recommend(log) for log in (url, logs / "digits"))
    assert found.static_scale == expected.static_scale
    assert halfscope.policies(url, assume_constant_between=True)
    assert halfscope.compare(url, logs / "digits").tensors
    assert halfscope.report(url).title.endswith("/digits")


def test_ranges_are_large_and_each_is_asked_for_once(web):
    web.asked.clear()
    halfscope.count(f"{web.url}/dumps/")
    for path in {path for path, *_ in web.asked}:
        ranges = sorted((first, end) for one, first, end in web.asked if one == path)
        size = (pathlib.Path(web.folder) / path).stat().st_size
        assert ranges[0][0] == 0 and ranges[-1][1] == size
        assert all(a[1] == b[0] for a, b in zip(ranges, ranges[1:]))  # no byte twice
        small = [end - first for first, end in ranges if end - first < 8 * MIB]
        assert sum(small) < 8 * MIB + MIB and len(small) <= 4  # what tells its kind, and ends


def test_steps_that_are_not_asked_for_stay_where_they_are(web):
    web.asked.clear()
    halfscope.analyze(f"{web.url}/dumps/", steps=1)
    read = {}
    for path, first, end in web.asked:
        read[path] = read.get(path, 0) + end - first
    assert read["dumps/step-1.safetensors"] > 20 * MIB
    assert read["dumps/step-0.safetensors"] <= MIB and read["dumps/step-2.safetensors"] <= MIB


def test_steps_that_are_not_there_are_said(web):
    with pytest.raises(halfscope.BadInput, match="/dumps: no recorded step is selected by steps=99"):
        halfscope.analyze(f"{web.url}/dumps", steps=99)


def test_reading_options_are_taken_before_counting(web):
    found = halfscope.analyze(f"{web.url}/packed.npz", recorded_scale=2.0**10, roles={"*": "weight"})
    assert [tensor.role for tensor in found.tensors] == ["weight"]


def test_bytes_that_do_not_arrive_are_named(web):
    web.fails = lambda path, first: path == "dumps/step-1.safetensors" and first > MIB
    with pytest.raises(halfscope.BadInput) as error:
        halfscope.count(f"{web.url}/dumps/")
    web.fails = None
    assert re.fullmatch(re.escape(f"{web.url}/dumps/step-1.safetensors") + r": bytes \d+ to \d+ do "
                        r"not arrive \(ClientResponseError: .*503.*\); check the connection, and "
                        "start again", str(error.value))


def test_a_range_that_fails_once_is_asked_for_again(web, logs):
    failed = set()
    web.fails = lambda path, first: (path, first) not in failed and not failed.add((path, first))
    counts = halfscope.count(f"{web.url}/dumps/")
    web.fails = None
    assert failed and counts.nbytes == halfscope.count(f"{web.url}/dumps/").nbytes


def test_a_server_without_ranges_is_refused(logs):
    with serve(logs, ranges=False) as server:
        with pytest.raises(halfscope.BadInput, match="its server gives no ranges: copy it"):
            halfscope.count(f"{server.url}/dumps/step-1.safetensors")


def test_a_file_that_shrinks_is_refused(logs, tmp_path):
    file = tmp_path / "step-0.safetensors"
    shutil.copy(logs / "dumps/step-0.safetensors", file)
    with serve(tmp_path) as server:
        def cut(path, first):
            if first > MIB:
                os.truncate(file, 2 * MIB)
        server.fails = cut
        with pytest.raises(halfscope.BadInput, match="the file has changed|do not arrive"):
            halfscope.count(f"{server.url}/step-0.safetensors")


def test_the_program_names_the_way_and_no_secret():
    told = run("analyze", f"https://me:{SECRET}@host/x?key={SECRET}", expect=1)[1]
    assert "is a URL, expected a path; Python reads it" in told and SECRET not in told


@pytest.mark.parametrize("name", ["none", "dumps/none.safetensors"])
def test_what_is_not_there_is_said(name, web, bucket):
    for url in (f"{web.url}/{name}", f"{bucket}/{name}"):
        assert refused(url) == f"{url}: no such path; check the URL"


def refused(url):
    """What is said of a URL that cannot be listed."""
    with pytest.raises(halfscope.BadInput) as error:
        halfscope.count(url)
    assert SECRET not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("status, said", [
    (401, "the server refuses (HTTP 401): check the credentials"),
    (403, "the server refuses (HTTP 403): check the credentials"),
    (404, "no such path; check the URL"),
    (503, "the server answers HTTP 503; try again later")])
def test_what_a_server_refuses_is_named(status, said, tmp_path):
    with serve(tmp_path) as server:
        server.status = status
        signed = server.url.replace("//", f"//me:{SECRET}@") + f"/log?key={SECRET}"
        assert refused(signed) == f"{server.url}/log: {said}"


@pytest.mark.parametrize("url, said", [
    ("http://me:very-secret@127.0.0.1:1/x?key=very-secret",
     "http://127.0.0.1:1/x: nothing answers at 127.0.0.1:1 (connection refused)"),
    ("http://me:very-secret@no-host.invalid/x",
     "http://no-host.invalid/x: host no-host.invalid is not known; check the URL"),
    ("http://me:very-secret/2@host/x", "http://host/x: is no valid URL; check it"),
    ("foo://x", "foo://x: foo:// is not known; use one of s3://, gs://, az://, https://, http://, or "
     "another scheme of fsspec: fsspec.available_protocols() lists them")])
def test_a_url_that_leads_nowhere_is_explained(url, said):
    assert refused(url) == said


def test_a_store_that_does_not_answer_is_named(monkeypatch, request):
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()  # it keeps its endpoint
    request.addfinalizer(s3fs.S3FileSystem.clear_instance_cache)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    assert refused("s3://none/x") == "s3://none/x: nothing answers at 127.0.0.1:1 (connection refused)"


def test_an_empty_folder_holds_no_file(tmp_path):
    (tmp_path / "empty").mkdir()
    with serve(tmp_path) as server:
        for url in (f"{server.url}/empty", f"{server.url}/empty/"):
            assert refused(url).startswith(f"{url}: holds no file; check the URL")
    assert refused(f"file://{tmp_path}/empty").endswith("/empty: holds no file; check the URL")


def test_what_obstore_says_ends_before_its_details(monkeypatch):
    pytest.importorskip("obstore")
    import fsspec

    def missing(url):
        raise ImportError("Install adlfs")
    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    assert re.fullmatch(r"az://box/x: cannot be listed \(GenericError: [^{}]*Account must be specified"
                        r"\); check the URL and your rights", refused("az://box/x"))
    with pytest.raises(ImportError, match="Install adlfs"):
        halfscope.count("ssh://host/x")  # no scheme of obstore


def test_no_secret_is_shown(web, bucket, caplog, tmp_path, monkeypatch):
    signed = web.url.replace("//", f"//user:{SECRET}@") + f"/dumps/step-1.safetensors?key={SECRET}"
    counts = halfscope.count(signed)
    counts.save(tmp_path / "counts.hst")
    page = run("recommend", tmp_path / "counts.hst", "--json", "-")[0]
    assert list(counts.logs) == [f"{web.url}/dumps/step-1.safetensors"]
    with pytest.raises(halfscope.BadInput) as missing:
        halfscope.count(signed.replace("step-1", "step-9"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for text in (repr(counts), bytes(counts).decode("latin-1"), page, caplog.text, str(missing.value)):
        assert SECRET not in text


def test_obstore_reads_where_fsspec_cannot(bucket, logs, monkeypatch):
    pytest.importorskip("obstore")
    import fsspec

    def missing(url):
        raise ImportError("Install s3fs to access S3")
    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    counts = halfscope.count(f"{bucket}/dumps")
    monkeypatch.undo()
    assert counts == halfscope.count(f"{bucket}/dumps")


def test_fsspec_is_asked_for(web, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"needs fsspec; install it with pip install 'halfscope\[re"):
        halfscope.count(f"{web.url}/digits/")


def test_nothing_is_left_in_the_folder_of_temporary_files(web, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    halfscope.count(f"{web.url}/dumps/")
    with pytest.raises(halfscope.BadInput):
        halfscope.count(f"{web.url}/none")
    assert not list(tmp_path.iterdir())


def test_dask_reads_urls(bucket):
    distributed = pytest.importorskip("distributed")
    from halfscope import distributed as spread

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            counts = spread.count(f"{bucket}/dumps", client=client, shards=3, progress=False)
    assert counts == halfscope.count(f"{bucket}/dumps")
