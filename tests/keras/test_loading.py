"""The names that Keras finds our classes by, before `extensor.keras` is imported."""

import keras

import extensor.keras as xk
from extensor import _keras_loading


def test_all_registered_classes_have_a_name():
    assert xk.Model is not None
    registered = {
        name.removeprefix("extensor>"): cls
        for name, cls in keras.saving.get_custom_objects().items()
        if name.startswith("extensor>")
    }
    assert set(registered) == set(_keras_loading.NAMES)
    assert all(isinstance(cls, type) for cls in registered.values())


def test_a_class_on_first_use_gives_way_to_the_class():
    found = keras.saving.get_registered_object("extensor>ListPooling")
    assert found is xk.layers.ListPooling
    before = dict(keras.saving.get_custom_objects())
    _keras_loading.register()
    assert keras.saving.get_custom_objects() == before


def test_a_class_on_first_use_makes_what_the_class_makes():
    pooling = xk.layers.ListPooling("mean", name="pooled")
    stand_in = _keras_loading.ClassOnFirstUse("extensor>ListPooling")
    again = stand_in.from_config(pooling.get_config())
    assert type(again) is xk.layers.ListPooling
    assert again.get_config() == pooling.get_config()
