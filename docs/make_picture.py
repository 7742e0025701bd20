"""Draw the picture of the README: digits with candidate labels, and how far PML-MA believes each of them.

    python docs/make_picture.py         # writes docs/_static/confidences.svg

The rows are drawn by a seed, not chosen. The cards have a background of their own, so that the picture reads the same on
light and dark pages.
"""

from html import escape
from pathlib import Path

import numpy as np

from skpml import PMLMA
from skpml.datasets import load_digits_attributes

TARGET = Path(__file__).parent / "_static" / "confidences.svg"
SEED, N_CARDS = 0, 4
CARD_WIDTH, CARD_HEIGHT, GAP, PIXEL = 212, 256, 12, 9
WIDTH, HEIGHT = N_CARDS * (CARD_WIDTH + GAP) - GAP, CARD_HEIGHT + GAP + 34
TRUE, FALSE, INK, FAINT = "#1f6feb", "#d9730d", "#1f2328", "#57606a"


def text(x, y, words, *, size=12.5, fill=INK, anchor="start", weight="normal"):
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


def box(x, y, width, height, fill, *, radius=0.0, extra=""):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" fill="{fill}"{extra}/>'


def digit(x, y, image):
    yield box(x - 4, y - 4, 8 * PIXEL + 8, 8 * PIXEL + 8, "#eef1f4", radius=6)
    for row, column in np.argwhere(image > 0):
        shade = f' fill-opacity="{image[row, column] / 16:.2f}"'
        yield box(x + column * PIXEL, y + row * PIXEL, PIXEL, PIXEL, INK, extra=shade)


def card(left, title, image, tags):
    yield box(
        left + 0.5, 0.5, CARD_WIDTH - 1, CARD_HEIGHT - 1, "#ffffff", radius=10, extra=' stroke="#d0d7de"'
    )
    yield from digit(left + 16, 18, image)
    yield text(left + 108, 34, title, weight="600")
    yield text(left + 108, 53, f"{len(tags)} candidates,", size=11.5, fill=FAINT)
    n_false = sum(not is_true for _, _, is_true in tags)
    yield text(left + 108, 69, f"{n_false} of them false", size=11.5, fill=FAINT)
    for line, (name, confidence, is_true) in enumerate(tags):
        y, colour = 122 + 23 * line, TRUE if is_true else FALSE
        yield text(left + 12, y, "✓" if is_true else "✗", fill=colour, weight="700")
        yield text(left + 27, y, name, size=11.5)
        yield box(left + 126, y - 9, 48, 10, "#e6e9ed", radius=3)
        yield box(left + 126, y - 9, 48 * confidence, 10, colour, radius=3)
        yield text(left + CARD_WIDTH - 10, y, f"{confidence:.2f}", size=11, fill=FAINT, anchor="end")


def legend(top):
    yield box(0.5, top + 0.5, WIDTH - 1, 33, "#ffffff", radius=10, extra=' stroke="#d0d7de"')
    yield text(16, top + 21, "✓ true label", size=11.5, fill=TRUE, weight="600")
    yield text(112, top + 21, "✗ false candidate", size=11.5, fill=FALSE, weight="600")
    words = "Bars: confidence, 0 to 1. The method saw images and candidates; the colours show the truth."
    yield text(WIDTH - 16, top + 21, words, size=11.5, fill=FAINT, anchor="end")


def picture():
    data = load_digits_attributes()
    confidences = PMLMA(random_state=SEED).fit(data.X, data.candidates).confidences_
    noisy = np.flatnonzero((data.candidates > data.truth).any(axis=1))
    rows = np.sort(np.random.default_rng(SEED).choice(noisy, size=N_CARDS, replace=False))
    parts = []
    for position, row in enumerate(rows):
        columns = np.flatnonzero(data.candidates[row])
        columns = columns[np.argsort(-confidences[row, columns], kind="stable")]
        tags = [(data.label_names[c], float(confidences[row, c]), bool(data.truth[row, c])) for c in columns]
        parts += card(position * (CARD_WIDTH + GAP), f"image {row}", data.X[row].reshape(8, 8), tags)
    parts += legend(CARD_HEIGHT + GAP)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" '
        f'role="img">\n<title>Handwritten digits with candidate labels and the confidence in each</title>\n'
        f"{body}\n</svg>\n"
    )


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
    print(f"wrote {TARGET.name}, {TARGET.stat().st_size / 1000:.0f} kB")
