"""`python -m daws.cli` is `daws`."""

import sys

from daws.cli import main

sys.exit(main())
