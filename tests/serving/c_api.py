"""A client that runs SavedModels with only TensorFlow's C API, through ctypes.

Run as `python c_api.py LIBRARY RUNS RESULTS`, in a process of its own: it imports neither
TensorFlow nor extensor nor NumPy, only the shared library of the first. RUNS is a pickled list of
(folder of a SavedModel, key of a signature, request); RESULTS becomes the pickled list of the
responses. Both have for each name a tuple (dtype, shape, data), of which data is the bytes of the
numbers, or the list of the strings.
"""

import ctypes
import json
import os
import pickle
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p

# The numbers of TF_DataType.
DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
    "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18,
    "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip
TSTRING_SIZE = 24  # of the struct TF_TString


class Output(ctypes.Structure):
    """TF_Output: one of the tensors that an operation makes."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


FUNCTIONS = {
    "TF_NewStatus": (c_void_p,),
    "TF_GetCode": (c_int, c_void_p),
    "TF_Message": (c_char_p, c_void_p),
    "TF_NewGraph": (c_void_p,),
    "TF_NewSessionOptions": (c_void_p,),
    "TF_LoadSessionFromSavedModel": (
        c_void_p, c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p,
        c_void_p,
    ),
    "TF_SessionRun": (
        None, c_void_p, c_void_p, POINTER(Output), POINTER(c_void_p), c_int, POINTER(Output),
        POINTER(c_void_p), c_int, c_void_p, c_int, c_void_p, c_void_p,
    ),
    "TF_CloseSession": (None, c_void_p, c_void_p),
    "TF_DeleteSession": (None, c_void_p, c_void_p),
    "TF_GraphOperationByName": (c_void_p, c_void_p, c_char_p),
    "TF_AllocateTensor": (c_void_p, c_int, POINTER(c_int64), c_int, c_size_t),
    "TF_DeleteTensor": (None, c_void_p),
    "TF_TensorData": (c_void_p, c_void_p),
    "TF_TensorByteSize": (c_size_t, c_void_p),
    "TF_TensorType": (c_int, c_void_p),
    "TF_NumDims": (c_int, c_void_p),
    "TF_Dim": (c_int64, c_void_p, c_int),
    "TF_StringInit": (None, c_void_p),
    "TF_StringCopy": (None, c_void_p, c_char_p, c_size_t),
    "TF_StringGetDataPointer": (c_void_p, c_void_p),
    "TF_StringGetSize": (c_size_t, c_void_p),
}  # fmt: skip


class CApi:
    """The functions of the library, by their names; those that have a status raise its error."""

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self._status = self.TF_NewStatus()
        self._loaded = {}

    def checked(self, function, *arguments):
        result = function(*arguments, self._status)
        if self.TF_GetCode(self._status):
            raise RuntimeError(self.TF_Message(self._status).decode(errors="replace"))
        return result

    def tensor(self, dtype, shape, data):
        """Returns a new TF_Tensor."""
        size = len(data) * TSTRING_SIZE if dtype == "string" else len(data)
        dims = (c_int64 * len(shape))(*shape)
        tensor = self.TF_AllocateTensor(DTYPES[dtype], dims, len(shape), size)
        address = self.TF_TensorData(tensor)
        if dtype != "string":
            ctypes.memmove(address, data, size)
            return tensor
        for i, text in enumerate(data):
            self.TF_StringInit(address + i * TSTRING_SIZE)
            self.TF_StringCopy(address + i * TSTRING_SIZE, text, len(text))
        return tensor

    def content(self, tensor):
        """Returns dtype, shape and data of a TF_Tensor, which is deleted."""
        number = self.TF_TensorType(tensor)
        dtype = next(name for name, known in DTYPES.items() if known == number)
        shape = [self.TF_Dim(tensor, axis) for axis in range(self.TF_NumDims(tensor))]
        address, size = self.TF_TensorData(tensor), self.TF_TensorByteSize(tensor)
        if dtype == "string":
            data = [
                ctypes.string_at(self.TF_StringGetDataPointer(at), self.TF_StringGetSize(at))
                for at in range(address or 0, (address or 0) + size, TSTRING_SIZE)
            ]
        else:
            data = ctypes.string_at(address, size) if size else b""
        self.TF_DeleteTensor(tensor)
        return dtype, shape, data

    def load(self, folder):
        """Returns the session and the graph of a model."""
        if folder not in self._loaded:
            graph = self.TF_NewGraph()
            session = self.checked(
                self.TF_LoadSessionFromSavedModel,
                *(self.TF_NewSessionOptions(), None, os.fsencode(folder)),
                *((c_char_p * 1)(b"serve"), 1, graph, None),
            )
            self._loaded[folder] = session, graph
        return self._loaded[folder]

    def close(self):
        for session, _ in self._loaded.values():
            self.checked(self.TF_CloseSession, session)
            self.checked(self.TF_DeleteSession, session)

    def run(self, folder, signature, request):
        """Returns the response of a signature, by the names in the file beside the model."""
        with open(os.path.join(folder, "assets.extra", "extensor.json"), encoding="utf-8") as file:
            described = json.load(file)["signatures"][signature]
        session, graph = self.load(folder)

        def outputs(side, names):
            tensors = {one["name"]: one["tensor"] for one in described[side]["tensors"]}
            found = []
            for name in names:
                operation, _, index = tensors[name].rpartition(":")
                address = self.TF_GraphOperationByName(graph, operation.encode())
                assert address, f"no operation {operation}"
                found.append(Output(address, int(index)))
            return (Output * len(found))(*found)

        names = [one["name"] for one in described["outputs"]["tensors"]]
        sent = [self.tensor(*one) for one in request.values()]
        received = (c_void_p * len(names))()
        self.checked(
            self.TF_SessionRun,
            *(session, None),
            *(outputs("inputs", request), (c_void_p * len(sent))(*sent), len(sent)),
            *(outputs("outputs", names), received, len(names)),
            *(None, 0, None),
        )
        for tensor in sent:
            self.TF_DeleteTensor(tensor)
        return dict(zip(names, map(self.content, received), strict=True))


def main(library, runs, results):
    with open(runs, "rb") as file:
        requests = pickle.load(file)
    api = CApi(library)
    responses = [api.run(*one) for one in requests]
    api.close()
    foreign = {"tensorflow", "extensor", "numpy"} & set(sys.modules)
    assert not foreign, f"imported {foreign}"
    with open(results, "wb") as file:
        pickle.dump(responses, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
