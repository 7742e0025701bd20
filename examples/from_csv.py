"""From a CSV file with a column of doubtful tags to a model file.

The example writes a small file to a temporary folder: two measurements and the tags of each photo, as in
"beach;sea;snow". Then it does what you would do with your file: read it, fit a model, look at confidences, save the model
and predict new rows.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

from skpml import PMLMA
from skpml.datasets import read_dataset
from skpml.io import load_model, read_model_info, save_model


def write_photos(path: Path) -> None:
    """Warm photos show a beach, cold ones snow, bright ones sky; sometimes a tag is added at random."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "warmth", "brightness", "tags"])
        for number in range(200):
            warmth, brightness = rng.uniform(-1, 1, size=2)
            tags = {"beach" if warmth > 0 else "snow"} | ({"sky"} if brightness > 0 else {"night"})
            tags |= set(rng.choice(["beach", "snow", "sky", "night"], size=1))
            writer.writerow(
                [f"{number:03d}.jpg", f"{warmth:.3f}", f"{brightness:.3f}", ";".join(sorted(tags))]
            )


with tempfile.TemporaryDirectory() as folder:
    photos_csv, model_file = Path(folder) / "photos.csv", Path(folder) / "photos.skpml"
    write_photos(photos_csv)

    photos = read_dataset(photos_csv, tags="tags", ignore=["file"])
    print(photos)

    model = PMLMA(random_state=0).fit(photos.X, photos.candidates)
    candidates = np.flatnonzero(photos.candidates[0])
    doubts = ", ".join(f"{photos.label_names[j]} {model.confidences_[0, j]:.2f}" for j in candidates)
    print(f"Tags of the first photo and the confidence in each: {doubts}")

    save_model(model, model_file, label_names=photos.label_names, feature_names=photos.feature_names)
    info = read_model_info(model_file)
    loaded = load_model(model_file)

    new_photos = [[0.8, 0.7], [-0.8, -0.7]]
    for row, decided in zip(new_photos, loaded.predict(new_photos), strict=True):
        tags = [name for name, yes in zip(info.label_names, decided, strict=True) if yes]
        print(
            f"A new photo with {dict(zip(info.feature_names, row, strict=True))} is tagged {', '.join(tags)}"
        )
