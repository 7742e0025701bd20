"""Take the picture of the first page: the review page of the example, in a real browser, after four decisions.

    python docs/make_screenshot.py      # writes docs/_static/review.png

Needs playwright and Chromium (pip install "scikit-pml[browser]"), and Pillow, which comes with matplotlib.
"""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser_helpers import chromium  # noqa: E402

TARGET = HERE / "_static" / "review.png"
VIEW, SHARPNESS, COLOURS = {"width": 1000, "height": 660}, 1.5, 96
SKPML = "from skpml.cli import main; main()"
COMMANDS = (
    ("data", "example", "digits"),
    ("clean", "digits/digits.csv", "--id", "file", "--image", "file",
     "-o", "digits/cleaned.csv", "--report", "digits/review.html"),
)  # fmt: skip


def screenshot() -> Image.Image:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for command in COMMANDS:
            subprocess.run([sys.executable, "-c", SKPML, *command], cwd=folder, check=True)
        page = browser.new_context(
            viewport=VIEW, device_scale_factor=SHARPNESS, color_scheme="light", reduced_motion="reduce"
        ).new_page()
        page.goto(Path(folder, "digits", "review.html").as_uri())
        page.locator("body:not([aria-busy])").wait_for()
        for _ in range(4):
            page.keyboard.press("d")
        page.wait_for_function("[...document.images].every((image) => image.complete && image.naturalWidth)")
        return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(picture: Image.Image, target: Path) -> None:
    """With a palette: a page of few colours becomes a third as large."""
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    save(screenshot(), TARGET)
    print(f"wrote {TARGET.name}, {TARGET.stat().st_size / 1000:.0f} kB")
