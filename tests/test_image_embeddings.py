"""Embeddings of images: colors and edges, a small ONNX model, files that cannot be read, tables and model files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skpml.embeddings import EmbeddingError, ImageEmbedder, _images, embed_images
from skpml.io import load_model, read_model_info, save_model
from skpml.reference import CandidateRidge
from skpml.tables import Columns, TableError, read_table

Image = pytest.importorskip("PIL.Image", reason="needs scikit-pml[images]")


def picture(path: Path, color: tuple[int, int, int], *, stripes: str = "", size: tuple[int, int] = (40, 30)):
    """A picture of one color, with stripes that go down or across."""
    pixels = np.full((size[1], size[0], 3), color, dtype=np.uint8)
    if stripes == "down":
        pixels[:, ::4] = 255 - pixels[:, ::4]
    elif stripes == "across":
        pixels[::4] = 255 - pixels[::4]
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def pictures(tmp_path):
    return [
        picture(tmp_path / "red.png", (200, 20, 20)),
        picture(tmp_path / "dark red.png", (180, 30, 20)),
        picture(tmp_path / "blue.jpg", (20, 20, 200)),
        picture(tmp_path / "down.png", (90, 90, 90), stripes="down"),
        picture(tmp_path / "across.png", (90, 90, 90), stripes="across"),
        picture(tmp_path / "larger.png", (90, 90, 90), stripes="down", size=(80, 60)),
    ]


@pytest.fixture
def make_model(tmp_path):
    """Write an ONNX model that returns the mean color of an image, or a map of its pixels."""
    onnx = pytest.importorskip("onnx", reason="needs the package onnx, to make a model")
    pytest.importorskip("onnxruntime", reason="needs scikit-pml[images]")

    def make(shape=("n", 3, 8, 8), kind="FLOAT", pooled=True, inputs=1):
        from onnx import TensorProto, helper

        types = [TensorProto.FLOAT, getattr(TensorProto, kind)]
        places = [2, 3] if shape[1] == 3 else [1, 2]
        kept = [shape[0], 3] if pooled else list(shape)
        nodes = [helper.make_node("Cast", ["image"], ["numbers"], to=TensorProto.FLOAT)]
        if pooled:
            nodes.append(helper.make_node("ReduceMean", ["numbers", "axes"], ["colors"], keepdims=0))
        else:
            nodes.append(helper.make_node("Identity", ["numbers"], ["colors"]))
        graph = helper.make_graph(
            nodes,
            "colors",
            [helper.make_tensor_value_info(name, types[1], shape) for name in ("image", "other")[:inputs]],
            [helper.make_tensor_value_info("colors", types[0], kept)],
            [helper.make_tensor("axes", TensorProto.INT64, [2], places)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        path = tmp_path / f"model {'-'.join(map(str, shape))} {kind} {pooled} {inputs}.onnx"
        onnx.save(model, path)
        return str(path)

    return make


class TestColorsAndEdges:
    def test_like_pictures_are_close(self, pictures):
        found = embed_images(pictures)
        assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
        red, dark_red, blue, down, across, larger = range(6)
        close = found @ found.T
        assert close[red, dark_red] > close[red, blue] + 0.2
        assert close[down, larger] > close[down, across] + 0.05

    def test_a_picture_is_seen_upright(self, tmp_path, pictures):
        with Image.open(pictures[3]) as image:
            exif = Image.Exif()
            exif[0x0112] = 6
            image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
        first, second = embed_images([pictures[3], tmp_path / "turned.png"])
        assert_allclose(second, first, atol=1e-5)

    def test_other_kinds_of_pictures(self, tmp_path):
        paths = []
        for mode in ("L", "P", "RGBA", "1", "CMYK"):
            paths.append(tmp_path / f"{mode}.{'tiff' if mode == 'CMYK' else 'png'}")
            Image.new(mode, (5, 7)).save(paths[-1])
        assert np.isfinite(embed_images(paths)).all()


class TestOnnx:
    def test_colors_reach_the_model_as_it_takes_them(self, make_model, pictures):
        colors = np.array([[200.0, 20, 20], [180, 30, 20]])
        unit = colors / np.linalg.norm(colors, axis=1, keepdims=True)
        for shape in (("n", 3, 8, 8), ("n", 8, 8, 3), ("n", 3, "h", "w")):
            found = embed_images(pictures[:2], make_model(shape, "UINT8"))
            assert_allclose(found, unit, atol=1e-3)
        scaled = (colors / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        unit = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        assert_allclose(embed_images(pictures[:2], make_model()), unit, atol=1e-3)

    def test_models_of_fixed_numbers_of_images_and_of_maps(self, make_model, pictures):
        expected = embed_images(pictures, make_model())
        for model in (make_model((1, 3, 8, 8)), make_model((4, 3, 8, 8)), make_model(pooled=False)):
            assert_allclose(embed_images(pictures, model), expected, atol=1e-5)

    def test_what_is_no_model_of_images(self, make_model, tmp_path, pictures):
        broken = tmp_path / "broken.onnx"
        broken.write_bytes(b"no model")
        gray, two = make_model(("n", 1, 8, 8)), make_model(inputs=2)
        for model in (str(tmp_path / "absent.onnx"), str(broken), gray, two):
            with pytest.raises(EmbeddingError, match="ONNX"):
                ImageEmbedder(model=model).fit(pictures)


class TestKept:
    @pytest.fixture
    def seen(self, monkeypatch):
        opened, open_image = [], _images._open_image
        monkeypatch.setattr(_images, "_open_image", lambda path: opened.append(path.name) or open_image(path))
        return opened

    def test_only_new_contents_are_embedded(self, pictures, tmp_path, seen):
        cache = tmp_path / "kept.npz"
        copy = tmp_path / "copy.png"
        copy.write_bytes(pictures[0].read_bytes())
        first = embed_images([*pictures[:3], copy], cache=cache)
        assert sorted(seen) == ["blue.jpg", "dark red.png", "red.png"]
        assert_array_equal(first[0], first[3])
        seen.clear()
        picture(pictures[1], (10, 200, 10))
        second = embed_images(pictures[:3], cache=cache)
        assert seen == ["dark red.png"]
        assert_array_equal(second[[0, 2]], first[[0, 2]])
        assert not np.allclose(second[1], first[1])

    def test_another_model_embeds_again(self, make_model, pictures, tmp_path, seen):
        cache = tmp_path / "kept.npz"
        embed_images(pictures[:2], cache=cache)
        assert embed_images(pictures[:2], make_model(), cache=cache).shape == (2, 3)
        assert len(seen) == 4


class TestUnreadable:
    def test_all_are_counted_with_their_rows(self, pictures, tmp_path):
        broken = tmp_path / "broken.jpg"
        broken.write_bytes(pictures[2].read_bytes()[:200])
        text, again, empty = (tmp_path / name for name in ("text.png", "again.png", "empty.png"))
        text.write_text("no picture")
        again.write_text("no picture")
        empty.touch()
        paths = [pictures[0], broken, tmp_path / "absent.png", text, again, empty, "", pictures[1], tmp_path]
        with pytest.raises(EmbeddingError, match="7 of 9 images") as caught:
            embed_images(paths, cache=tmp_path / "kept.npz")
        assert sorted(caught.value.faults) == [1, 2, 3, 4, 5, 6, 8]
        assert "no such file" in caught.value.faults[2]
        assert "(row 1, " in str(caught.value)
        assert "2 more" in str(caught.value)
        assert not (tmp_path / "kept.npz").exists()

    @pytest.mark.parametrize(("package", "model"), [("PIL", None), ("onnxruntime", "any.onnx")])
    def test_without_a_package_the_extra_is_named(self, monkeypatch, pictures, package, model):
        _images._load_onnx.cache_clear()
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setitem(sys.modules, f"{package}.Image", None)
        with pytest.raises(ImportError, match=r"scikit-pml\[images\]"):
            embed_images(pictures, model)


def test_embedder_is_an_estimator():
    assert clone(ImageEmbedder(model="some.onnx")).get_params() == {"model": "some.onnx"}


class TestTables:
    @pytest.fixture
    def photos(self, tmp_path):
        (tmp_path / "photos").mkdir()
        lines = ["file,light,tags"]
        for row in range(12):
            picture(
                tmp_path / "photos" / f"{row}.png", (200, 20, 20 + row) if row % 2 else (20, 20, 200 + row)
            )
            lines.append(f"photos/{row}.png,{row % 5},{'warm' if row % 2 else 'cold;warm'}")
        path = tmp_path / "photos.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_when_images_are_learned_from(self, photos, make_model):
        def read(**options):
            names = {name: options.pop(name) for name in ("features", "ignore") if name in options}
            return read_table(photos, columns=Columns(image="file", **names), **options)

        # Shown only, if there is something else to learn from.
        assert read().feature_names == ("light",)
        assert not list(photos.parent.glob("*.npz"))
        assert read(ignore=["light"]).feature_types == {"file": "image"}
        assert read(features=["file", "light"]).feature_types == {"light": "number", "file": "image"}
        assert read(features=["light"], image_model=make_model()).feature_types["file"] == "image"
        table = read(image_model=make_model())
        assert (table.X.shape, list(table.views)) == ((12, 4), ["numbers", "image"])
        assert table.images[3] == "photos/3.png"
        assert photos.with_name("photos.csv.images.npz").exists()
        with pytest.raises(TableError) as caught:
            read_table(photos, columns=Columns(id="file"), image_model="some.onnx")
        assert caught.value.argument == "image_model"

    def test_a_model_file(self, photos, make_model, tmp_path, monkeypatch):
        columns = Columns(image="file")
        table = read_table(photos, columns=columns, image_model=make_model())
        model = CandidateRidge().fit(table.X, table.candidates)
        path = tmp_path / "m.skpml"
        options = {"feature_kind": "mixed", "feature_types": list(table.feature_types.values())}
        both = Pipeline([("features", table.transformer), ("model", model)])
        save_model(both, path, feature_names=list(table.feature_types), **options)
        assert read_model_info(path).feature_types == ("number", "image")
        # Paths are relative to the table, wherever it is read from.
        monkeypatch.chdir("/")
        wanted = Columns(features=["light", "file"], image="file")
        rows = read_table(photos, columns=wanted, labeled=False)
        assert_allclose(load_model(path).predict_proba(rows.X), model.predict_proba(table.X))

    def test_a_broken_image_is_named_by_its_line(self, photos):
        (photos.parent / "photos" / "4.png").unlink()
        with pytest.raises(TableError, match="1 of 12 images") as caught:
            read_table(photos, columns=Columns(image="file", ignore=["light"]))
        assert (caught.value.path, caught.value.line, caught.value.column) == (photos, 6, "file")


class TestFolderOfVectors:
    @pytest.fixture
    def table(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("name,file,tags\nx,p/1.jpg,a\ny,p/2.jpg,b\n")
        (tmp_path / "v" / "p").mkdir(parents=True)
        return path

    @pytest.mark.parametrize("names", [("p/1", "p/2"), ("1", "2"), ("p/1.jpg", "p/2.jpg")])
    def test_vectors_of_images(self, table, names):
        for number, name in enumerate(names):
            np.save(table.parent / "v" / f"{name}.npy", np.full((1, 3), number, dtype=np.float32))
        found = read_table(table, columns=Columns(image="file"), embeddings=table.parent / "v")
        assert (found.feature_kind, found.X.tolist()) == ("embeddings", [[0] * 3, [1] * 3])

    def test_vectors_of_ids_and_what_is_missing(self, table):
        folder = table.parent / "v"
        np.save(folder / "x.npy", [1.0, 2.0])
        for options, facts in (
            ({}, {"path": folder, "argument": "image"}),
            ({"id": "name"}, {"path": folder, "value": ("y",)}),
        ):
            with pytest.raises(TableError) as caught:
                read_table(table, columns=Columns(**options), embeddings=folder)
            assert {name: getattr(caught.value, name) for name in facts} == facts
        np.save(folder / "y.npy", [1.0, 2.0, 3.0])
        with pytest.raises(TableError) as caught:
            read_table(table, columns=Columns(id="name"), embeddings=folder)
        assert caught.value.path == folder / "y.npy"
        np.save(folder / "y.npy", [3.0, np.nan])
        with pytest.raises(TableError, match="NaN in row 1"):
            read_table(table, columns=Columns(id="name"), embeddings=folder)
        np.save(folder / "y.npy", [3.0, 4.0])
        assert read_table(table, columns=Columns(id="name"), embeddings=folder).X.tolist() == [[1, 2], [3, 4]]
