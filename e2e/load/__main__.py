"""`python -m e2e.load SPEC RECORDS`: make the traffic until standard input ends; exit code 1 if not all was made."""

import sys
from pathlib import Path

from e2e.load.cohort import load
from e2e.load.generator import Generator

generator = Generator(load(Path(sys.argv[1])), Path(sys.argv[2]))
generator.start()
# Whoever started this holds the other end: its death, however sudden, ends the traffic.
sys.stdin.read()
generator.stop()
sys.exit(1 if generator.broken else 0)
