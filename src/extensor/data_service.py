"""The processes of tf.data service for datasets of `xt.data`.

`python -m extensor.data_service dispatcher --port 5050` starts a dispatcher, and
`python -m extensor.data_service worker --dispatcher host:5050` a worker. docs/scaling.md describes
them.
"""

from extensor import data as _  # noqa: F401 - it has the functions that make datasets again from their recipes
from extensor._data.service import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
