"""Download from OpenML, played by a server on this machine."""

import gzip
import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pytest
import sklearn.datasets
import sklearn.datasets._openml as sklearn_openml

from skpml.datasets import (
    REGISTRY,
    DatasetFacts,
    content_checksum,
    fetch_dataset,
    load_dataset,
)
from skpml.tables import TableError

TINY = DatasetFacts("tiny", 3, 2, 2, 1.3333, openml_id=77)
DENSE = "@relation x\n@attribute a numeric\n@attribute b {u,v}\n@attribute p {FALSE,TRUE}\n@attribute q {FALSE,TRUE}\n"
DENSE += "@data\n1.5,u,TRUE,FALSE\n-2,v,TRUE,TRUE\n0,u,FALSE,TRUE\n"
SPARSE = DENSE.partition("@data")[0] + "@data\n{0 1.5,2 TRUE}\n{0 -2,1 v,2 TRUE,3 TRUE}\n{3 TRUE}\n"


class OpenML(ThreadingHTTPServer):
    """Serves whatever is in `pages` by path; `asked` lists what was asked for."""

    def __init__(self):
        self.pages, self.asked = {}, []
        super().__init__(("127.0.0.1", 0), Handler)

    def offer(self, arff, *, arff_format="ARFF", md5=None, number=77):
        columns = [line.split()[1:3] for line in arff.splitlines() if line.startswith("@attribute")]
        features = [
            {
                "index": str(index),
                "name": name,
                "data_type": "numeric" if kind == "numeric" else "nominal",
                "is_target": str(name in "pq").lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for index, (name, kind) in enumerate(columns)
        ]
        rows = len(arff.partition("@data\n")[2].splitlines())
        description = {
            "id": str(number),
            "name": "tiny",
            "version": "1",
            "description": "A tiny set.",
            "format": arff_format,
            "status": "active",
            "url": "https://www.openml.org/data/v1/download/5/tiny.arff",
            "file_id": "5",
            "md5_checksum": md5 or hashlib.md5(arff.encode()).hexdigest(),
        }
        self.pages = {
            f"/api/v1/json/data/{number}": json.dumps({"data_set_description": description}),
            f"/api/v1/json/data/features/{number}": json.dumps({"data_features": {"feature": features}}),
            f"/api/v1/json/data/qualities/{number}": json.dumps(
                {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": str(rows)}]}}
            ),
            "/data/v1/download/5/tiny.arff": arff,
            "/data/v1/download/5": arff,
        }


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        self.send_response(404 if page is None else 200)
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def openml(monkeypatch, tmp_path):
    server = OpenML()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()

    def to_server(request, *args, **options):
        address = request.full_url if isinstance(request, Request) else request
        return urlopen(f"http://127.0.0.1:{server.server_port}{urlsplit(address).path}", *args, **options)

    monkeypatch.setattr(sklearn_openml, "urlopen", to_server)
    monkeypatch.setattr(sklearn_openml.time, "sleep", lambda _: None)
    monkeypatch.setitem(REGISTRY, "tiny", TINY)
    monkeypatch.setenv("SKPML_DATA", str(tmp_path / "data"))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def left_behind():
    folder = Path(os.environ["SKPML_DATA"])
    return sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.parametrize(("arff", "arff_format"), [(DENSE, "ARFF"), (SPARSE, "Sparse_ARFF")])
def test_download_is_converted_and_kept(openml, arff, arff_format):
    openml.offer(arff, arff_format=arff_format)
    found = fetch_dataset("tiny")
    X = found.X if arff is DENSE else found.X.toarray()
    np.testing.assert_array_equal(X, [[1.5, 0], [-2, 1], [0, 0]])
    assert found.truth.tolist() == found.candidates.tolist() == [[1, 0], [1, 1], [0, 1]]
    assert (found.label_names, found.feature_names) == (("p", "q"), ("a", "b"))
    assert found.description.startswith("A tiny set.")
    assert left_behind() == ["tiny.content-sha256", "tiny.npz"]
    openml.asked.clear()
    for again in (fetch_dataset("tiny"), load_dataset("tiny", verify=True)):
        assert content_checksum(again) == content_checksum(found)
    assert openml.asked == []


def test_force_downloads_again_and_compares_with_the_first_time(openml):
    openml.offer(DENSE)
    first = fetch_dataset("tiny")
    kept = [(Path(os.environ["SKPML_DATA"]) / name).read_bytes() for name in left_behind()]
    openml.asked.clear()
    assert content_checksum(fetch_dataset("tiny", force=True)) == content_checksum(first)
    assert openml.asked
    openml.offer(DENSE.replace("1.5", "1.25"))
    with pytest.raises(
        TableError, match=r"openml\.org/d/77: the content of 'tiny' has checksum .*, expected"
    ):
        fetch_dataset("tiny", force=True)
    assert kept == [(Path(os.environ["SKPML_DATA"]) / name).read_bytes() for name in left_behind()]


def test_a_set_of_another_name_is_refused(openml, monkeypatch):
    openml.offer(DENSE)
    monkeypatch.setitem(REGISTRY, "large", DatasetFacts("large", None, None, None, None, openml_id=77))
    with pytest.raises(TableError, match="is named 'tiny' at OpenML, not 'large'"):
        fetch_dataset("large")
    assert left_behind() == []


def test_registered_checksum(openml, monkeypatch):
    openml.offer(DENSE)
    right = content_checksum(fetch_dataset("tiny"))
    for file in Path(os.environ["SKPML_DATA"]).iterdir():
        file.unlink()
    for checksum, wrong in ((right, False), ("0" * 64, True)):
        monkeypatch.setitem(
            REGISTRY, "tiny", DatasetFacts("tiny", 3, 2, 2, None, openml_id=77, content_sha256=checksum)
        )
        if wrong:
            Path(os.environ["SKPML_DATA"], "tiny.npz").unlink()
            Path(os.environ["SKPML_DATA"], "tiny.content-sha256").unlink()
            with pytest.raises(TableError, match="nothing was written"):
                fetch_dataset("tiny")
            assert left_behind() == []
        else:
            fetch_dataset("tiny")


@pytest.mark.parametrize(
    ("arff", "message"),
    [
        (DENSE + "1,u,TRUE,FALSE\n", "'tiny' should have n_rows 3, got 4"),
        (DENSE.replace("TRUE,TRUE", "TRUE,FALSE"), "'tiny' should have cardinality 1.3333, got 1.0"),
        (
            DENSE.replace("FALSE,TRUE}", "FALSE,TRUE,MAYBE}").replace("0,u,FALSE", "0,u,MAYBE"),
            "'p' is 'MAYBE' in row 2",
        ),
        (DENSE.replace("1.5", "?"), "X contains NaN in row 0, column 0 .'a'."),
        (DENSE.replace("1.5", "x"), "OpenML's answer for 'tiny' cannot be read"),
        (DENSE.replace(" p ", " r ").replace(" q ", " s "), "names no target columns"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*redownloading:RuntimeWarning")
def test_what_is_not_the_set_is_refused(openml, arff, message):
    openml.offer(arff)
    with pytest.raises(TableError, match=message):
        fetch_dataset("tiny")
    assert left_behind() == []


@pytest.mark.filterwarnings("ignore:.*redownloading:RuntimeWarning")
def test_damage_on_the_way_is_noticed(openml):
    openml.offer(DENSE, md5="0" * 32)
    with pytest.raises(TableError, match="md5 checksum"):
        fetch_dataset("tiny")
    assert left_behind() == []


@pytest.mark.filterwarnings("ignore:A network error occurred:UserWarning")
def test_no_connection(openml):
    with pytest.raises(ConnectionError, match="could not download 'tiny' from OpenML"):
        fetch_dataset("tiny")
    assert left_behind() == []


@pytest.mark.parametrize("name", ["yeastbp", "nonsense"])
def test_sets_openml_does_not_have(name):
    with pytest.raises(LookupError, match="is not known to be at OpenML; these are: birds, emotions"):
        fetch_dataset(name)


def test_emotions_as_openml_sends_it(openml, monkeypatch):
    """scikit-learn keeps OpenML's own answers for emotions, with its first 13 rows, for its tests."""
    folder = Path(sklearn.datasets.__file__).parent / "tests/data/openml/id_40589"
    if not folder.is_dir():
        pytest.skip("this scikit-learn comes without its test data")

    def page(name):
        return gzip.decompress((folder / f"{name}.gz").read_bytes()).decode()

    arff = page("data-v1-dl-4644182.arff")
    description = json.loads(page("api-v1-jd-40589.json"))
    description["data_set_description"]["md5_checksum"] = hashlib.md5(arff.encode()).hexdigest()
    openml.pages = {
        "/api/v1/json/data/40589": json.dumps(description),
        "/api/v1/json/data/features/40589": page("api-v1-jdf-40589.json"),
        "/api/v1/json/data/qualities/40589": page("api-v1-jdq-40589.json").replace('"593.0"', '"13.0"'),
        urlsplit(description["data_set_description"]["url"]).path: arff,
        "/data/v1/download/4644182": arff,
    }
    with pytest.raises(TableError, match="'emotions' should have n_rows 593, got 13"):
        fetch_dataset("emotions")
    monkeypatch.setitem(REGISTRY, "emotions", DatasetFacts("emotions", 13, 72, 6, None, openml_id=40589))
    found = fetch_dataset("emotions")
    assert found.label_names[0] == "amazed.suprised"
    assert found.truth[:2].tolist() == [[0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1]]
    assert found.X[0, 0] == 0.034741
