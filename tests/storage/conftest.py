"""A server of S3's protocol on this machine, its files, and options that tests of jobs share."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from behavior.timing import wait_until

from pipeline.beam.storage import use_storage_options
from pipeline.beam.stored_path import path_of

sys.path.append(str(Path(__file__).parents[1] / "pipeline"))

from behavior.stored_corpus import write_corpus


@pytest.fixture(scope="session")
def options():
    """Beam's options for a server that has an empty bucket."""
    boto3 = pytest.importorskip("boto3", reason="make storage-test installs it")
    pytest.importorskip("moto", reason="make storage-test installs it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_listening(port), "the server listens")
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=url, **keys)
        client.create_bucket(Bucket="bucket")
        client.close()
        yield [
            f"--s3_endpoint_url={url}",
            "--s3_access_key_id=a",
            "--s3_secret_access_key=b",
            "--s3_region_name=us-east-1",
        ]
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def folder(options, request):
    use_storage_options(options)
    return path_of(f"s3://bucket/{request.node.name}")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), 200)


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
