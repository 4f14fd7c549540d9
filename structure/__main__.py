"""`python -m structure`: writes docs/api.txt, docs/layers.svg and tests/README.md."""

from structure import api, picture, tests

api.main()
picture.main()
tests.main()
