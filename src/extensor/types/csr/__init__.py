"""CSRSparseTensor: a sparse tensor that keeps its entries row by row."""
