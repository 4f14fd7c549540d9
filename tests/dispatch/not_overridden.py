"""The public functions of TensorFlow that types cannot override, each with the reason."""

NOT_OVERRIDDEN = {}
"""By regular expressions for their names."""


def _not(reason, names):
    NOT_OVERRIDDEN.update(
        dict.fromkeys(names.replace(".", r"\.").replace("*", ".*").split(), reason)
    )


_not(
    "it takes no tensors",
    """
    as_dtype autograph.* config.* control_dependencies debugging.*able_* debugging.experimental.*
    debugging.*et_log_device_placement debugging.is_traceback_filtering_enabled device distribute.*
    dtypes.as_dtype executing_eagerly experimental.*_scope experimental.async_clear_error
    experimental.*dispatch_for* experimental.enable_strict_mode
    experimental.function_executor_type experimental.register_filesystem_plugin feature_column.*
    function get_current_name_scope get_logger graph_util.* import_graph_def init_scope
    inside_function io.gfile.*
    io.write_graph lite.* load_library load_op_library make_ndarray mlir.* no_gradient profiler.*
    quantization.experimental.quantize_saved_model random.*et_global_generator
    random.experimental.*et_global_generator random.set_seed register_tensor_conversion_function
    saved_model.* summary.create_* summary.flush summary.trace_* sysconfig.* test.* tools.* tpu.*
    train.* variable_creator_scope xla.experimental.jit_scope
    """,
)
_not(
    "it decorates functions",
    "custom_gradient grad_pass_through nondifferentiable_batch_function recompute_grad",
)
_not(
    "it takes datasets, or functions of their elements, and values of any type in them",
    "data.experimental.*",
)
_not(
    "it takes values of any type, which it does not compute with",
    """
    experimental.extension_type.as_dict group map_fn nest.* switch_case type_spec_from_value
    vectorized_map while_loop xla.experimental.compile
    """,
)
_not(
    "it looks at a tensor or makes one, which other types are not",
    """
    constant debugging.is_numeric_tensor experimental.dlpack.* experimental.dtensor.*
    get_static_value is_symbolic_tensor is_tensor make_tensor_proto random.create_rng_state
    random.experimental.create_rng_state
    """,
)
_not("it goes through a graph of tensors", "gradients hessians")
_not("it writes for TensorBoard", "summary.*")
_not("it is NumPy's, and makes arrays of its arguments", "experimental.numpy.*")
_not("it is deprecated, or makes variables", "guarantee_const io.match_filenames_once")
