"""What is known of each data set before it is opened: one table, used for listing, download and checking."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetFacts:
    """Facts of a data set; None means unknown.

    Parameters
    ----------
    name : str
        Name of the set and of its file, ``NAME.npz``.
    n_rows, n_features, n_labels : int or None
        Size. A set of labels only has no `n_features`.
    cardinality : float or None
        Mean number of true labels of a row, to four places.
    real_candidates : bool or None
        Whether the set has real candidate labels.
    openml_id : int or None
        Number of the set at OpenML, from where `fetch_dataset` takes it.
    file_sha256 : str or None
        Checksum of the benchmark archive's ``NAME.npz``.
    content_sha256 : str or None
        Checksum of the content, as `content_checksum` defines it; a download that differs is refused.
    present : bool
        Whether `load_dataset` can load the set now; `list_datasets` finds out.
    """

    name: str
    n_rows: int | None
    n_features: int | None
    n_labels: int | None
    cardinality: float | None
    real_candidates: bool | None = False
    openml_id: int | None = None
    file_sha256: str | None = None
    content_sha256: str | None = None
    present: bool = False


# Sizes and file checksums are those of the benchmark archive. The numbers at OpenML are those of its collection
# "2016_multilabel_r_benchmark_paper", which are consecutive by name. Only that of emotions was seen in an answer of
# OpenML (kept by scikit-learn for its tests), so fetch_dataset checks the name too. The collection's image and genbase
# are not offered: they are reported to have other features than those of the benchmark.
# Name, rows, features, labels, cardinality, checksum of the file.
_ROWS: tuple[tuple[str, int | None, int | None, int | None, float | None, str | None], ...] = (
    ("arts", 5000, 462, 26, 1.636, "bbf0d54439d37e6fd52bfeb90d2b46c7039631e605ae925e84b0f67af8159d32"),
    ("bibtex", 7395, 1836, 159, 2.4019, "733979e32878d87913c6251dc6e7eb85257d2f5deacd1e2f7d90b1093fa1d2ba"),
    ("birds", 645, 260, 19, 1.014, "0b376243585ec2db07c78ca2a0569cdf406929b1fa70a5f11b2731ca67384bd7"),
    ("cal500", 502, 68, 174, 26.0438, "1811c520afcc5f6eb8c77f552e4c2f54a5986e4cc0595f52fbf6f6c8cab630c3"),
    ("corel5k", 5000, 499, 374, 3.522, "5558014889d61352001b51b27ce8ba01cf69c5954a11c81c8f3acb5ef0ebd396"),
    ("delicious", 16105, 500, 983, 19.02, "eb738c7aa3c5e918f4c7244112bfb80a9bca8f6a62036271a34f64afa184831a"),
    ("emotions", 593, 72, 6, 1.8685, "c89d1f3a40ec2a410a93adb4bde03818b4efc677f07bd3be4516f977a7cb1300"),
    ("enron", None, None, None, None, None),
    ("flags", 194, 19, 7, 3.3918, "ac64fdaa585472ed6e69f773eb19cc8446855b60641ff9e930d0a09d152dc1b4"),
    ("foodtruck", 407, 17, 12, 2.2899, "48b3eb5f244a4745028b7e9dc04062c716208afd988a878458408ce1e1831795"),
    ("genbase", 662, 1185, 27, 1.2523, "a62ecab31ca9b3e5e48b43dd13b3aa4780801c214185e61126b603c53c28ee8d"),
    ("health", 5000, 612, 32, 1.6622, "b1067a8e45e83474816abb57726a164cf67116383cf48d4bfd39d40ead1a2e55"),
    ("image", 2000, 294, 5, 1.236, "a63d38b543c6d3894218743befd475a825ae827950d1e7cf42c46a620097d462"),
    ("mirflickr", 10433, 100, 7, 1.7744, None),
    ("mirflickr_labels", 10433, None, 7, 1.7744, "afbdd896ed9266c0f7a444d172411e8e2662b512709b0ef39f5077e754db2914"),
    ("mirflickr_subset5000", 5000, 100, 7, 1.7706, "e34c8e7592599559641d4cee5fe8ef16f4db92bf4a124e97fb0c39023b502495"),
    ("music_emotion", 6833, 98, 11, 2.4235, None),
    ("music_emotion_labels", 6833, None, 11, 2.4235, "303dfc6ca841a131c2b906cb669a9ef58ee2bc6c74a57a091aa5c8df140a02d7"),
    ("music_style", 6839, 98, 10, 1.4404, None),
    ("music_style_labels", 6839, None, 10, 1.4404, "0ebcb39d4d5fc4c1312cf5d6953d01508b21899771833e4fecf5b99a830dac7f"),
    ("recreation", 5000, 606, 22, 1.4232, "2831606d2beefde702bb86f0a2f0c28e112dc0bd872cd1062d38b92159c246aa"),
    ("reference", 5000, 793, 33, 1.1694, "719dac19fb1780f4f6fe1c87dbb09c1f9305b8e1a84f6894278a4b22d5221bae"),
    ("reuters", None, None, None, None, None),
    ("scene", 2407, 294, 6, 1.074, "e1465cf78140afbf0754b2f173c17af71e1ea57de86b3980a2b932aa803c21c1"),
    ("slashdot", None, None, None, None, None),
    ("tmc2007", 28596, 500, 22, 2.1579, "4126b4e227d2e673bb1d8ba45b01dc9cc9de8c9e24ef916cc109934881b4dbf9"),
    ("yeast", 2417, 103, 14, 4.2371, "3f4cf2711ac2fc3a1a1478bf022f843e3d5147d5573015b8be7a6b43242c68ba"),
    ("yeastbp", 6139, 6139, 217, 5.5367, "ab10c88c3b66daf4c91c30e7cd02cb018af3bd3e5a20ea4a122ac24dcaa328dd"),
    ("yeastcc", None, None, None, None, None),
    ("yeastmf", None, None, None, None, None),
)  # fmt: skip
_REAL_CANDIDATES = ("mirflickr", "music_", "yeastbp", "yeastcc", "yeastmf")
_OPENML = {
    "birds": 40588, "emotions": 40589, "enron": 40590, "reuters": 40594,
    "scene": 40595, "slashdot": 40596, "yeast": 40597,
}  # fmt: skip
# Of the archive's file; the 13 rows of OpenML's that scikit-learn keeps for its tests are the same.
_CONTENT = {"emotions": "54e22c54d901687d8c9416e5f67134a24422dfa7d85b51fffc1d3c76e3f2961e"}
REGISTRY = {
    row[0]: DatasetFacts(
        *row[:5], row[0].startswith(_REAL_CANDIDATES), _OPENML.get(row[0]), row[5], _CONTENT.get(row[0])
    )
    for row in _ROWS
}
