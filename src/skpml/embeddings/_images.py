"""Embeddings of images by a model in an ONNX file, or by their colors and edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from skpml._writing import require_packages
from skpml.embeddings._keeping import EmbeddingError, Progress, digest, embed_once

# Images that a model gets at a time, and their height and width if it takes any.
_IMAGE_BLOCK, _IMAGE_SIZE = 32, 224
# Least height and width of a decoded image that has more.
_DECODED = 512
# What most models of images expect: red, green and blue of all photos of ImageNet, from 0 to 1.
_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Colors and edges: pixels per side, cells per side, levels of a color, directions of an edge.
_PIXELS, _CELLS, _LEVELS, _DIRECTIONS = 64, 4, 4, 8
_MOST_FAULTS = 5


@dataclass(kw_only=True, repr=False, eq=False)
class ImageEmbedder(TransformerMixin, BaseEstimator):
    """Map images to the vectors of a model, or of their colors and edges, each of length one.

    Parameters
    ----------
    model : str or None, default=None
        An ONNX file of a model that takes images. None describes images by the frequencies of their colors, by the colors
        of parts of the image and by the directions of edges in these, which tells far less than a model.

    See Also
    --------
    embed_images : The same, with embeddings that are kept in a file.

    Notes
    -----
    Needs ``pip install "scikit-pml[images]"``. Nothing is learned from the images. A model file of a pipeline holds the
    path of the model and not its weights. An image is cut to the height and width of the model (224 if it takes any). If
    the model takes whole numbers, it gets the colors from 0 to 255, else colors as models of ImageNet expect them. Of
    several outputs, the first matrix is taken; of an output with more axes, the mean over positions.

    Examples
    --------
    >>> from skpml.embeddings import ImageEmbedder
    >>> ImageEmbedder(model="resnet18.onnx")
    ImageEmbedder(model='resnet18.onnx')
    """

    model: str | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Load the model.

        Parameters
        ----------
        X : sequence of str, or array of shape (n, 1)
            Paths of images; they are not used.
        y : None
            Not used.

        Returns
        -------
        self : ImageEmbedder
            The transformer.
        """
        if self.model is not None:
            _load_onnx(self.model)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Embed images.

        Parameters
        ----------
        X : sequence of str, or array of shape (n, 1)
            Paths of images.

        Returns
        -------
        ndarray of shape (n, d)
            A vector of length one for each image.
        """
        return embed_images([str(path) for path in np.asarray(X, dtype=object).reshape(-1)], self.model)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        return tags


def embed_images(
    paths: Sequence[str | Path],
    model: str | None = None,
    *,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Embed images by a model, or describe their colors and edges, and keep the embeddings in a file.

    Parameters
    ----------
    paths : sequence of path-like
        Files of images in any format that Pillow reads; each content that occurs several times is embedded once.
    model : str or None, default=None
        An ONNX file of a model that takes images; None describes colors and edges. See :class:`ImageEmbedder`.
    cache : path-like, optional
        An ``.npz`` file of embeddings. Images that are in it are not embedded again, if they were embedded by the same
        model; afterwards it has the embeddings of these images and no others. It does not contain the images.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

    Returns
    -------
    ndarray of shape (n, d)
        A vector of length one for each image.

    Raises
    ------
    EmbeddingError
        If the model cannot be loaded, or if images are missing or cannot be read: all of them are counted.

    See Also
    --------
    ImageEmbedder : A transformer for a pipeline.
    """
    require_packages("reading images", "images", "PIL.Image")
    loaded = None if model is None else _load_onnx(model)
    prepare = _describe_image if loaded is None else loaded.prepare
    faults: dict[int, str] = {}
    digests: list[bytes] = []
    for place, path in enumerate(paths):
        try:
            digests.append(digest(Path(path).read_bytes()))
        except OSError as error:
            faults[place] = (
                "there is no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
            )
            digests.append(digest(f"missing {path}".encode("utf-8", "surrogatepass")))

    def embed(places: list[int]) -> NDArray[np.float32]:
        blocks = []
        for start in range(0, len(places), _IMAGE_BLOCK):
            if progress is not None:
                progress(start, len(places), "embedding images")
            block = []
            for place in places[start : start + _IMAGE_BLOCK]:
                if place not in faults:
                    try:
                        block.append(prepare(_open_image(Path(paths[place]))))
                    except Exception as error:
                        # Decoders raise nearly anything on damaged bytes.
                        reason = "" if "cannot identify" in str(error) else f" ({error})"
                        faults[place] = f"not an image that can be read{reason}"
            if not faults:
                blocks.append(np.stack(block) if loaded is None else loaded.embed(np.stack(block)))
        if faults:
            _refuse_images(paths, digests, faults)
        if progress is not None:
            progress(len(places), len(places), "embedding images")
        vectors = np.concatenate(blocks)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)

    identity = "colors and edges" if loaded is None else loaded.identity
    return embed_once(digests, embed, cache, identity)


def _refuse_images(paths: Sequence[Any], digests: Sequence[bytes], faults: dict[int, str]) -> None:
    """Raise the error about images; copies of a broken one are broken too."""
    reasons = {digests[place]: reason for place, reason in faults.items()}
    faults = {place: faults.get(place, reasons.get(each, "")) for place, each in enumerate(digests)}
    faults = {place: reason for place, reason in faults.items() if reason}
    listed = [f"{str(paths[place])!r} (row {place}, {why})" for place, why in faults.items()]
    more = f" and {len(listed) - _MOST_FAULTS:,} more" if len(listed) > _MOST_FAULTS else ""
    raise EmbeddingError(
        f"{len(listed):,} of {len(paths):,} images cannot be read: {', '.join(listed[:_MOST_FAULTS])}{more}",
        faults,
    )


def _open_image(path: Path) -> Any:
    """Return an image in red, green and blue, as a person sees it."""
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        # A large JPEG is decoded at a part of its size, which is faster.
        image.draft("RGB", (_DECODED, _DECODED))
        return ImageOps.exif_transpose(image).convert("RGB")


def _describe_image(image: Any) -> NDArray[np.float32]:
    """Describe the colors of an image, of its parts, and the directions of edges in these."""
    from PIL import ImageOps

    small = np.asarray(ImageOps.fit(image, (_PIXELS, _PIXELS)), dtype=np.float64) / 256
    levels = (small * _LEVELS).astype(np.intp).reshape(-1, 3) @ (_LEVELS**2, _LEVELS, 1)
    colors = np.sqrt(np.bincount(levels, minlength=_LEVELS**3))
    layout = _cut_into_cells(small).mean(axis=1).ravel()
    down, right = np.gradient(small.mean(axis=2))
    strength = _cut_into_cells(np.hypot(down, right))
    turn = np.mod(np.arctan2(down, right), np.pi) * _DIRECTIONS / np.pi
    bins = _cut_into_cells(turn).astype(np.intp) % _DIRECTIONS
    edges = [np.bincount(*each, minlength=_DIRECTIONS) for each in zip(bins, strength, strict=True)]
    parts = (colors, layout, np.sqrt(np.ravel(edges)))
    # An image of one color has no edges.
    return np.concatenate([part / max(float(np.linalg.norm(part)), 1e-9) for part in parts]).astype(
        np.float32
    )


def _cut_into_cells(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pixels of each cell of an image."""
    size = _PIXELS // _CELLS
    cut = pixels.reshape(_CELLS, size, _CELLS, size, -1).swapaxes(1, 2).reshape(_CELLS**2, size**2, -1)
    return cut[..., 0] if pixels.ndim == 2 else cut


class _OnnxModel:
    """A model of images in an ONNX file."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self.identity = f"{path.name} {digest(content).hex()}"
        runtime = import_module("onnxruntime")
        self._session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (given, *others), outputs = self._session.get_inputs(), self._session.get_outputs()
        shape, ranks = given.shape, [len(each.shape) for each in outputs]
        if others or len(shape) != 4 or 3 not in (shape[1], shape[3]):
            raise ValueError(
                f"it takes {[each.shape for each in (given, *others)]}, not images of three colors"
            )
        self._name, self._colors_first = given.name, shape[1] == 3
        sides = shape[2:] if self._colors_first else shape[1:3]
        self._height, self._width = (side if isinstance(side, int) else _IMAGE_SIZE for side in sides)
        self._whole_numbers = given.type == "tensor(uint8)"
        self._batch = shape[0] if isinstance(shape[0], int) else None
        self._output = outputs[ranks.index(2) if 2 in ranks else 0].name

    def prepare(self, image: Any) -> Any:
        """Return the pixels of an image as the model takes them."""
        from PIL import Image, ImageOps

        cut = ImageOps.fit(image, (self._width, self._height), method=Image.Resampling.BICUBIC)
        pixels = np.asarray(cut, dtype=np.uint8)
        pixels = pixels if self._whole_numbers else ((pixels / 255 - _MEAN) / _SPREAD).astype(np.float32)
        return np.moveaxis(pixels, 2, 0) if self._colors_first else pixels

    def embed(self, pixels: Any) -> NDArray[np.float32]:
        """Embed images; a model of a fixed number of images gets some of them twice."""
        size = self._batch or len(pixels)
        found = []
        for start in range(0, len(pixels), size):
            some = np.resize(pixels[start : start + size], (size, *pixels.shape[1:]))
            vectors = self._session.run([self._output], {self._name: np.ascontiguousarray(some)})[0]
            if vectors.ndim > 2:
                # Positions come last in maps of features, and first in sequences.
                vectors = vectors.mean(axis=(2, 3) if vectors.ndim == 4 else 1)
            found.append(vectors.reshape(size, -1))
        return np.concatenate(found)[: len(pixels)].astype(np.float32)


@lru_cache(maxsize=1)
def _load_onnx(model: str) -> _OnnxModel:
    require_packages("embedding images", "images", "onnxruntime", "PIL.Image")
    path = Path(model)
    if not path.is_file():
        raise EmbeddingError(f"there is no model of images {model!r}; give an ONNX file")
    try:
        return _OnnxModel(path)
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise EmbeddingError(
            f"the model of images {model!r} cannot be used ({reason}); give an ONNX file"
        ) from error
