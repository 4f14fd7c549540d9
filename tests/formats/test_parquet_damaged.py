"""Files that pyarrow reads otherwise than they say, or that change while they are read."""

import importlib
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from extensor import errors


def streamed(path, columns=None):
    return [r for batch in xt.data.parquet(path, 4, columns) for r in batch.to_py()]


def test_dictionaries_inside_of_records_are_read_from_several_row_groups(tmp_path):
    # Arrow joins none of several row groups, and writes them so for pandas.
    path = tmp_path / "it.parquet"
    words = pa.array(["a", "b", "a", "c", "a"]).dictionary_encode()
    table = pa.table(
        {
            "r": pa.StructArray.from_arrays([words], ["x"]),
            "l": pa.ListArray.from_arrays([0, 1, 1, 3, 4, 5], words),
        }
    )
    pq.write_table(table, path, row_group_size=2)
    assert xt.read_parquet(path).to_py() == table.to_pylist()
    assert streamed(path) == table.to_pylist()


def test_views_of_strings_are_read_from_dictionaries(tmp_path):
    path = tmp_path / "it.parquet"
    words = pa.array(["a word", "another"] * 50_000, pa.string_view())
    table = pa.table({"s": words, "t": words.cast(pa.string()), "x": range(100_000)})
    pq.write_table(table, path, compression="none")
    records = xt.read_parquet(path, columns=["s"])
    assert records["s"].numpy()[:3].tolist() == [b"a word", b"another", b"a word"]
    assert xt.read_parquet([path, path])["t"].shape == [200_000]


@pytest.mark.parametrize("count", [0, 4, 6])
def test_a_footer_that_counts_other_records_is_an_error(tmp_path, count):
    path = tmp_path / "it.parquet"
    pq.write_table(pa.table({"x": pa.array([1, 2, 3, 4, 5], pa.int32())}), path)
    whole, found = path.read_bytes(), 0
    for at in range(len(whole) - 1):
        if whole[at : at + 2] == b"\x16\x0a":  # 5 as a 64-bit field of the footer
            path.write_bytes(whole[: at + 1] + bytes([2 * count]) + whole[at + 2 :])
            if pq.read_metadata(path).num_rows == count:
                found += 1
                message = f"{count} records, the number in the footer, got 5 records"
                for read in (xt.read_parquet, streamed):
                    with pytest.raises(errors.FormatError, match=message):
                        read(path)
    assert found


@pytest.mark.parametrize("message", ["Integers with more than 64 bits not implemented", ""])
def test_what_pyarrow_does_not_implement_names_the_file(tmp_path, monkeypatch, message):
    def refuse(*args, **kwargs):
        raise pa.ArrowNotImplementedError(message)

    pq.write_table(pa.table({"x": [1]}), tmp_path / "it.parquet")
    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with pytest.raises(errors.FormatError, match=r"it\.parquet: .*cannot be read"):
        xt.read_parquet(tmp_path / "it.parquet")


@pytest.mark.parametrize("change", ["overwrite", "replace", "remove"])
def test_a_file_that_changes_during_a_pass(tmp_path, monkeypatch, change):
    monkeypatch.setattr(importlib.import_module("extensor._data.plan"), "PART_ROWS", 100)
    path, new = tmp_path / "it.parquet", tmp_path / "new.parquet"
    for place, age in ((path, 1), (new, 2)):
        table = pa.table({"age": [age] * 4000})
        pq.write_table(table, place, row_group_size=100, use_dictionary=False)
    batches = iter(xt.data.parquet(path, 50))
    ages = next(batches)["age"].numpy().tolist()
    if change == "overwrite":
        path.write_bytes(new.read_bytes())
        with pytest.raises(errors.FormatError, match=r"expected the file to stay unchanged"):
            ages.extend(age for batch in batches for age in batch["age"].numpy().tolist())
    else:
        os.replace(new, path) if change == "replace" else path.unlink()
        ages.extend(age for batch in batches for age in batch["age"].numpy().tolist())
        assert len(ages) == 4000
    assert set(ages) == {1}


@pytest.mark.whole("starts a process")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process")
def test_a_process_that_was_forked_in_the_middle_of_a_pass_ends(tmp_path, run_python):
    pq.write_table(pa.table({"x": range(100_000)}), tmp_path / "it.parquet")
    run_python(
        f"""
        import atexit, os
        import extensor as xt

        iterators = [iter(xt.data.parquet({str(tmp_path / "it.parquet")!r}, 10)) for _ in range(3)]
        for iterator in iterators:
            next(iterator)
        child = os.fork()
        if child == 0:
            atexit._run_exitfuncs()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert next(iterators[0])["x"].shape == [10]
        """
    )
