"""What reading many or wide Parquet files costs, counted: footers, layouts and Python calls."""

import gc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor._formats.parquet import opened
from extensor._formats.parquet import plan as plans
from extensor._formats.parquet import read as reading
from extensor._formats.parquet.plan import ParquetPlan
from extensor._formats.parquet.read import table_of
from extensor.errors import FormatError
from tests.samples.calls import calls_of


@pytest.fixture
def read(monkeypatch):
    """Returns what was read: "footer" of each file that is parsed, "schema" of each layout."""
    found = []

    class File(pq.ParquetFile):
        def __init__(self, *args, metadata=None, **kwargs):
            if metadata is None:
                found.append("footer")
            super().__init__(*args, metadata=metadata, **kwargs)

    plain = plans.leaf_paths
    monkeypatch.setattr(opened.pq, "ParquetFile", File)
    monkeypatch.setattr(plans, "leaf_paths", lambda of: (found.append("schema"), plain(of))[1])
    return found


def files(folder, count, **columns):
    for i in range(count):
        table = pa.table({"x": [i, i + 0.5], **columns})
        pq.write_table(table, folder / f"{i:04}.parquet")
    return folder


def test_read_parquet_reads_each_footer_once_and_the_schema_once(tmp_path, read):
    records = xt.read_parquet(files(tmp_path, 5))
    assert records["x"].numpy().tolist() == [i + half for i in range(5) for half in (0, 0.5)]
    assert read == ["footer", "schema", *["footer"] * 4]


def test_a_file_is_freed_when_its_records_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_LARGE", 0)  # its metadata is checked, which begins a read
    path = files(tmp_path, 1, text=["a", "a"]) / "0000.parquet"

    def alive():
        gc.collect()
        return {id(each) for each in gc.get_objects() if isinstance(each, pq.ParquetFile)}

    before = alive()
    xt.read_parquet(path)
    for _ in xt.data.parquet(path, 1):
        pass
    assert alive() <= before


def test_a_dataset_reads_each_footer_once_when_it_is_made(tmp_path, read):
    xt.data.parquet(files(tmp_path, 5), 2)
    assert read.count("footer") == 5


def test_files_of_other_columns_have_layouts_of_their_own(tmp_path, read):
    files(tmp_path, 3)
    pq.write_table(pa.table({"y": ["a"], "x": [9.0]}), tmp_path / "0003.parquet")
    assert xt.read_parquet(tmp_path, ["x"])["x"].shape == [7]
    assert read.count("schema") >= 2


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_that_is_replaced_after_planning_is_an_error(tmp_path, keep):
    path = files(tmp_path, 1) / "0000.parquet"
    plan = ParquetPlan(path, keep_footers=keep)
    table = pa.table({"x": [7.0, 8.0]}).replace_schema_metadata({"more": "x" * 1_000})
    pq.write_table(table, tmp_path / "new", compression="gzip")
    (tmp_path / "new").replace(path)
    [file] = plan.files
    with pytest.raises(FormatError, match=r"0000\.parquet: expected the file to stay unchanged"):
        table_of(plan, file, file.row_groups)


def test_footers_are_kept_up_to_a_limit(tmp_path, monkeypatch):
    size = pq.read_metadata(files(tmp_path, 3) / "0000.parquet").serialized_size
    monkeypatch.setattr("extensor._formats.parquet.plan.FOOTER_BYTES", 2 * size)
    kept = [file.footer is not None for file in ParquetPlan(tmp_path, keep_footers=True).files]
    assert kept == [True, True, False]
    assert not any(file.footer for file in ParquetPlan(tmp_path).files)


@pytest.mark.whole("makes very large values")
@pytest.mark.parametrize(
    "chosen",
    [lambda names: names[:1], lambda names: names[::2], lambda names: names],
    ids=["one", "half", "all"],
)
def test_reading_columns_takes_calls_in_proportion_to_their_number(tmp_path, chosen):
    def calls(count):
        names = [f"f{i}" for i in range(count)]
        path = tmp_path / f"{count}.parquet"
        pq.write_table(pa.table({name: np.arange(2.0) for name in names}), path)
        return calls_of(lambda: xt.read_parquet(path, chosen(names)))

    assert calls(800) < 2.2 * calls(400)
