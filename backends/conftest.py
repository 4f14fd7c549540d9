"""The processes of the tests find `backends`, and say nothing of TensorFlow's devices."""

import os
import pathlib

os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(pathlib.Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
