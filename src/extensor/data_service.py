"""The processes of tf.data service for datasets of `xt.data`.

`python -m extensor.data_service dispatcher --port 5050` starts a dispatcher, and
`python -m extensor.data_service worker --dispatcher host:5050` a worker. docs/scaling.md describes
them.
"""

from extensor._data.service import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
