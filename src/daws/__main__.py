"""`python -m daws` is the command `daws`."""

import sys

from daws.cli import main

sys.exit(main())
