"""`python -m extensor`: the command line."""

import sys

from extensor._cli.main import main

sys.exit(main())
