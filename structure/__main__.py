"""`python -m structure`: writes docs/api.txt and docs/floors.svg."""

from structure import api, picture

api.main()
picture.main()
