"""A client of a signature, which makes tensors of values, and values of tensors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from extensor._serving.layout import Layout
from extensor._serving.tensor_check import check_tensors


class Client:
    """Turns the values that a function takes into the tensors that a server takes, and back.

    It needs no model and no server: whatever carries tensors by name may stand between.
    `load_client` reads it from a SavedModel.

    Args:
        parameters: The arguments of the function that are sent; one with a default may be left out.
        inputs: The tensors of the arguments, by the arguments' names.
        outputs: The tensors of the result.
    """

    def __init__(self, parameters: inspect.Signature, inputs: Layout, outputs: Layout) -> None:
        self._parameters = parameters
        self._inputs = inputs
        self._outputs = outputs

    @property
    def parameters(self) -> inspect.Signature:
        """The arguments that `encode` takes."""
        return self._parameters

    @property
    def inputs(self) -> Layout:
        """The tensors of the arguments."""
        return self._inputs

    @property
    def outputs(self) -> Layout:
        """The tensors of the result."""
        return self._outputs

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parameters} of {self._inputs} to {self._outputs}"

    def encode(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Returns the tensors of a request, by their names.

        Args:
            *args: The arguments of the function, as it takes them itself, or what can be cast to
                them: lists for tensors, dicts for records.
            **kwargs: More of them. One that has a default may be missing: so are its tensors.

        Raises:
            DTypeError: If a value cannot be cast to the type that the function takes (also a
                TypeError).
            StructureError: If a nest has another structure, or a tensor another shape (also a
                ValueError).
            TypeError: If an argument is missing or too many.
        """
        optional = [n for n, p in self._parameters.parameters.items() if p.default is not p.empty]
        given = self._parameters.bind(*args, **kwargs).arguments
        return self._inputs.encode(given, optional)

    def decode(self, tensors: Mapping[str, Any], validate: bool = True) -> Any:
        """Returns the result that the tensors of a response make.

        Args:
            tensors: The tensors of the response by their names, or arrays, or lists.
            validate: Whether to check that they fit each other: row splits that cut the values,
                fields with as many rows as there are records.

        Raises:
            FieldError: If a name is missing, or means nothing here (also a KeyError).
            DTypeError: If a tensor has another dtype (also a TypeError).
            StructureError: If one has another shape, or the tensors do not fit each other (also a
                ValueError).
        """
        result = self._outputs.decode(tensors)
        if validate:
            check_tensors(self._outputs.structure, result, self._outputs.ragged)
        return result
