"""Files of any format as streams of record batches, and streams of batches as files."""
