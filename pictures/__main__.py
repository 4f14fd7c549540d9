"""`python -m pictures`: writes docs/pictures/."""

from __future__ import annotations

from pictures import badges, bars, model, pruning, records, schema
from pictures.drawing import FOLDER

PICTURES = {
    "badges.svg": badges.badges,
    "records.svg": records.records_to_model,
    "layout.svg": records.layout,
    "schema.svg": schema.schema,
    "pruning.svg": pruning.pruning,
    "model.svg": model.model,
    "speed.svg": bars.speed,
    "peers.svg": bars.peers,
}


def main() -> None:
    """Writes all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw().svg())
        print(f"[pictures] wrote {name}")


if __name__ == "__main__":
    main()
