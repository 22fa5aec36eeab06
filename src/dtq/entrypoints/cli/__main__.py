"""`python -m dtq.entrypoints.cli` is `dtq`."""

import sys

from dtq.entrypoints.cli import main

sys.exit(main())
