"""Find the false tags of a data set, and correct them.

Each handwritten digit has six tags or a few more, some of them false. PML-MA is fitted to all of them and gives each tag
a confidence. A person should check the tags with the lowest confidence first. If there is no time to check, a tag is kept
if the fitted model also predicts it.

Here the true labels are known, so the example can count how often it is correct. The model never sees them.
"""

import numpy as np

from skpml import PMLMA
from skpml.datasets import load_digits_attributes
from skpml.metrics import denoising_scores

data = load_digits_attributes()
model = PMLMA(random_state=0).fit(data.X, data.candidates)

# 1. The most doubtful tags, as a list for review.
rows, labels = np.nonzero(data.candidates)
order = np.argsort(model.confidences_[rows, labels], kind="stable")
rows, labels = rows[order], labels[order]
is_false = data.truth[rows, labels] == 0

print("The ten most doubtful tags:")
for row, label, false in zip(rows[:10], labels[:10], is_false[:10], strict=True):
    name, confidence = data.label_names[label], model.confidences_[row, label]
    print(f"  image {row:4d}  {name:18s} {confidence:.2f}  {'false' if false else 'true after all'}")

print(f"\nOf all {len(rows)} tags, {is_false.mean():.1%} are false.")
for first in (100, 1000, 3000):
    print(f"Of the {first:4d} most doubtful ones, {is_false[:first].mean():.1%} are.")

# 2. Corrected tags, without review: the candidates that the model predicts.
corrected = data.candidates & (model.predict(data.X) == 1)
removed = data.candidates - corrected
found = denoising_scores(data.candidates, data.truth, removed=removed)
print(
    f"\nWithout review {removed.sum()} tags are removed: {found['recall']:.1%} of the false ones are among them,"
)
print(f"and {found['precision']:.1%} of the removals are right.")
