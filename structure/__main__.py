"""`python -m structure`: writes lists, pages and the picture of docs/, and tests/README.md."""

from structure import api, errors, llms, picture, tests

api.main()
errors.main()
llms.main()
picture.main()
tests.main()
