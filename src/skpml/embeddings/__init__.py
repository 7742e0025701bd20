"""Embeddings of texts and images by a model, kept between runs.

A language model maps a text to a vector that depends on its meaning: texts that say the same in other words are close.
It is one of the package sentence-transformers, by its name or by the folder that it is in. A model of images is an ONNX
file; without one, images are described by their colors and edges.
"""

from skpml.embeddings._images import ImageEmbedder, embed_images
from skpml.embeddings._keeping import EmbeddingError
from skpml.embeddings._texts import TextEmbedder, embed_texts

__all__ = ["EmbeddingError", "ImageEmbedder", "TextEmbedder", "embed_images", "embed_texts"]
