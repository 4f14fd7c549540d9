"""`python -m structure`: writes docs/api.txt, docs/floors.svg and tests/README.md."""

from structure import api, picture, tests

api.main()
picture.main()
tests.main()
