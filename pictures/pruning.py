"""Which parts of a Parquet file are read when a model needs three of thirty columns."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from pictures.drawing import Drawing

NEEDED = ["city", "items.price", "items.count"]
GROUPS, RECORDS = 4, 32


def pruning() -> Drawing:
    """Returns the picture: one box a column chunk, those that are read in color."""
    metadata = _file()
    columns = [metadata.schema.column(i).path.split(".") for i in range(metadata.num_columns)]
    # Parquet has two more levels for a list: items.list.element.price.
    read = [".".join([path[0], *path[3:]]) in NEEDED for path in columns]
    width, left = 20, 150
    drawing = Drawing(
        left + width * len(columns) + 40,
        150 + 40 * metadata.num_row_groups,
        "The column chunks of a Parquet file that are read for three of thirty columns",
    )
    drawing.text(24, 34, "A file of 30 columns, a model that needs 3", 16, bold=True)
    names = ", ".join(f'"{name}"' for name in NEEDED)
    drawing.text(24, 60, f"xt.data.parquet(path, 256, columns=[{names}])", 13, mono=True)
    for group in range(metadata.num_row_groups):
        y = 82 + group * 40
        drawing.text(24, y + 20, f"row group {group}", 13)
        for i, is_read in enumerate(read):
            kind = "ours" if is_read else "off"
            drawing.box(left + i * width, y, width - 4, 30, kind)
    y = 96 + metadata.num_row_groups * 40
    chunks = sum(read) * metadata.num_row_groups
    for x, kind, words in (
        (24, "ours", f"read and decoded: {chunks} column chunks"),
        (330, "off", f"never read: {len(columns) * metadata.num_row_groups - chunks}"),
    ):
        drawing.box(x, y, 14, 14, kind)
        drawing.text(x + 22, y + 12, words, 12, "soft")
    y += 34
    drawing.text(
        24,
        y,
        "Row groups are read one after the other while batches are taken. A field in a list is "
        "a column of its own.",
        12,
        "soft",
    )
    return drawing


def _file() -> pq.FileMetaData:
    """Returns the description of a file of 26 flat columns and a list of records of 4 fields."""
    item = {"name": "tea", "price": 4.0, "count": 2, "note": ""}
    flat = [*(f"a{i}" for i in range(9)), "city", *(f"b{i}" for i in range(10))]
    record = {name: "Oslo" for name in flat}
    record |= {"items": [item]} | {f"c{i}": 0.5 for i in range(6)}
    table = pa.Table.from_pylist([record] * GROUPS * RECORDS)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=RECORDS)
    return pq.ParquetFile(buffer).metadata
