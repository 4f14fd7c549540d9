"""MaskedTensor: values beside a mask that says which of them are valid."""
