"""Take the pictures of the review page: the page of the example in a browser, at a wrong tag with its evidence.

    python docs/make_screenshot.py      # writes docs/_static/review.png and docs/_static/review_details.png

Needs playwright and Chromium (pip install "scikit-pml[browser]"), and Pillow, which matplotlib installs.
"""

import csv
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from skpml.cleaning import audit
from skpml.datasets import write_example
from skpml.review import write_review
from skpml.tables import Columns, read_table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser_helpers import chromium  # noqa: E402

TARGETS = [HERE / "_static" / name for name in ("review.png", "review_details.png")]
VIEW, TALL = {"width": 1100, "height": 760}, {"width": 1100, "height": 1280}
PIXEL_RATIO, N_COLORS = 1.5, 96
SHOWN = "() => [...document.querySelectorAll('#detail img')].every((image) => image.complete && image.naturalWidth)"


def take_screenshots() -> list[Image.Image]:
    """Return pictures of the whole page, and of the details of a tag with examples and another tag to add."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name, "digits")
        write_example(folder)
        with (folder / "planted.csv").open(newline="", encoding="utf-8") as file:
            planted = {(row["id"], row["label"]) for row in csv.DictReader(file)}
        table = read_table(folder / "digits.csv", columns=Columns(id="file", image="file"))
        write_review(
            table, audit(table.X, table.candidates, label_names=table.label_names), folder / "review.html"
        )
        page = browser.new_context(
            viewport=VIEW, device_scale_factor=PIXEL_RATIO, color_scheme="light", reduced_motion="reduce"
        ).new_page()
        page.goto((folder / "review.html").as_uri())
        page.locator("body:not([aria-busy])").wait_for()
        page.locator("#show-doubts").click()
        page.locator("#grid").focus()
        page.keyboard.press("x")
        while (
            tuple(page.locator(f"#detail-{name}").text_content() for name in ("id", "label")) not in planted
        ):
            page.keyboard.press("j")
        whole = _take(page)
        page.set_viewport_size(TALL)
        page.keyboard.press("e")
        page.keyboard.press("a")
        page.keyboard.type("straight")
        # Not the list of names that the browser offers.
        page.keyboard.press("Tab")
        return [whole, _take(page.locator("#detail"), page)]


def _take(part: Any, page: Any = None) -> Image.Image:
    (page or part).wait_for_function(SHOWN)
    return Image.open(io.BytesIO(part.screenshot())).convert("RGB")


def save(picture: Image.Image, target: Path) -> None:
    """Save with a palette, which makes a page of few colors three times smaller."""
    picture.quantize(N_COLORS, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    for target, picture in zip(TARGETS, take_screenshots(), strict=True):
        save(picture, target)
        print(f"wrote {target.name}, {target.stat().st_size / 1000:.0f} kB")
