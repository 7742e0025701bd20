"""The library's advice in the words of the command: it speaks of arguments, the command of options."""

from __future__ import annotations

import re

_TRANSLATIONS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r'pass candidates="COLUMN" for a column of tags such as "a;b", candidates=\[…\] for columns of 0 and 1, '
            r"or candidate_prefix=…",
            'pass --tags COLUMN for a column of tags such as "a;b", or --label COLUMN once for each column of 0 and 1',
        ),
        (
            r'pass tags="COLUMN" for a column of tags such as "a;b", or labels=\[…\] for columns of 0 and 1',
            'pass --tags COLUMN for a column of tags such as "a;b", or --label COLUMN once for each column of 0 and 1',
        ),
        (r"\b(id|encoding)=…", r"--\1"),
        (r"^tags and labels exclude", "--tags and --label exclude"),
        (r"^features and embeddings exclude", "--feature and --embeddings exclude"),
        (r"^delimiter and decimal cannot", "--delimiter and --decimal cannot"),
        (r"^(delimiter|quote|decimal|separator) must", r"--\1 must"),
        (r"^(label|feature)s does not apply to", r"--\1 does not apply to"),
        (
            r"^(tags|text|image|id|ignore|encoding|delimiter|quote|decimal) does not apply to",
            r"--\1 does not apply to",
        ),
        (r"pass delimiter=…", "pass --delimiter CHAR"),
        (r"pass (decimal|quote)=('.*?')", r"pass --\1 \2"),
        (r'pass encoding="(.*?)" or "(.*?)"', r"pass --encoding \1 or \2"),
        (r"\b(embeddings|text|separator)=…", r"--\1"),
        (r"\bfeatures=\[…\]", "--feature"),
        (r"\bignore=\['(.*?)'\]", r"--ignore '\1'"),
        (r'pass truth="(.*?)"', r"pass --true-tags '\1'"),
        (r"pass separator='(.*?)'", r"pass --separator '\1'"),
        (r'pass its encoding, as in encoding="latin-1"', "pass its encoding, as in --encoding latin-1"),
        (r'use style="flags" or another separator', "use --style flags or another --separator"),
        (
            r"load it without candidates=…, or replace them by dataset\.with_candidates\(…\)",
            "leave out --candidates",
        ),
        (r"use a smaller n_neighbors", "use a smaller --n-neighbors"),
        (r": pass overwrite=True to replace (it|files in it)", r"; --force replaces \1"),
        (
            r"download it by skpml\.datasets\.fetch_dataset\('(.*?)'\)",
            r"download it by fetch_dataset('\1') in Python",
        ),
    )
)


def in_options(message: str) -> str:
    """What the library says of its arguments, said of the options that stand for them."""
    for pattern, words in _TRANSLATIONS:
        message = pattern.sub(words, message)
    return message
