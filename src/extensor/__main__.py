"""`python -m extensor`: the command line."""

import sys

from extensor_command.main import main

sys.exit(main())
