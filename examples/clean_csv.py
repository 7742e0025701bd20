"""Clean a CSV file of doubtful tags, and count how many planted wrong tags were found.

Five hundred handwritten digits have tags such as "six;even;closed loop", and wrong tags were planted among them. The
audit reads pixels and tags, and estimates the probability that each tag is correct. The planted tags are listed in a
separate file, which is read only afterwards, to count. Ridge regression, which treats every tag as correct, shows what
the simplest method finds.
"""

import tempfile
from pathlib import Path

from sklearn.metrics import roc_auc_score

from skpml.cleaning import audit, read_decisions
from skpml.datasets import write_example
from skpml.tables import Columns, read_table, write_cleaned

with tempfile.TemporaryDirectory() as name:
    folder = Path(name, "digits")
    write_example(folder)

    table = read_table(folder / "digits.csv", columns=Columns(id="file", image="file"))
    found = audit(table.X, table.candidates, label_names=table.label_names)
    write_cleaned(table, found.actions == "drop", folder / "cleaned.csv")

    tagged = table.candidates > 0
    planted = read_decisions(folder / "planted.csv", table).drop_mask(table)
    print(f"{planted.sum()} of {tagged.sum():,} tags were planted.")
    for action, words in (("drop", "dropped"), ("ask", "left to a person"), ("keep", "kept")):
        chosen = found.actions == action
        print(f"{chosen.sum():5,} {words + ',':17s} {planted[chosen].sum():3d} of them planted")

    floor = audit(table.X, table.candidates, method="ridge")
    ours, ridge = (roc_auc_score(planted[tagged], -result.confidences[tagged]) for result in (found, floor))
    print(f"A planted tag has a lower confidence than a correct one in {ours:.1%} of all pairs;")
    print(f"with ridge regression, in {ridge:.1%}.")
