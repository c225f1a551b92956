"""Conversion of JAX functions to ONNX graphs, for the primitives that networks use. Needs the extra ``onnx``.

A function of one position is traced for a batch of symbolic size, and each primitive of its jaxpr becomes one or a few nodes.
User-supplied architectures can be exported if they use only these primitives.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from tilewe_jax.utils.extras import optional_import

OPSET = 18
"""Version of the ONNX operators, which runtimes support since 2023."""

_SIMPLE = {
    "abs": "Abs",
    "add": "Add",
    "and": "And",
    "copy": "Identity",
    "div": "Div",
    "eq": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "log": "Log",
    "logistic": "Sigmoid",
    "lt": "Less",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "neg": "Neg",
    "not": "Not",
    "or": "Or",
    "pow": "Pow",
    "sign": "Sign",
    "sqrt": "Sqrt",
    "stop_gradient": "Identity",
    "sub": "Sub",
    "tanh": "Tanh",
    "xor": "Xor",
}
"""Primitives that correspond to one ONNX operator with the same arguments."""
_REDUCTIONS = {"reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_sum": "ReduceSum"}
_CALLS = ("closed_call", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "jit", "pjit", "remat2")


def to_onnx(
    function: Callable[..., Sequence[jax.Array]],
    input_shape: Sequence[int],
    names: Sequence[str],
    *,
    input_name: str = "observation",
    about: dict[str, str] | None = None,
) -> Any:
    """Convert a function of one position to an ``onnx.ModelProto`` for batches of any size.

    Args:
      function: maps ``float32[*input_shape]`` to several arrays. Its weights become constants of the graph.
      input_shape: shape of its argument.
      names: names of its results.
      input_name: name of its argument.
      about: metadata of the model.

    Raises ``ValueError`` for unsupported primitives, and ``MissingExtraError`` without the extra.
    """
    onnx, helper = optional_import("onnx", "onnx"), optional_import("onnx.helper", "onnx")
    (batch,) = export.symbolic_shape("batch")
    traced = jax.make_jaxpr(jax.vmap(function))(jax.ShapeDtypeStruct((batch, *input_shape), jnp.float32))
    graph = _Graph(onnx, input_name)
    inputs = [helper.make_tensor_value_info(input_name, onnx.TensorProto.FLOAT, ["batch", *input_shape])]
    results = graph.inline(traced.jaxpr, [graph.constant(value) for value in traced.consts], [input_name])
    outputs = []
    for name, result, value in zip(names, results, traced.jaxpr.outvars, strict=True):
        graph.node("Identity", [result], output=name)
        shape = ["batch" if size is batch or not isinstance(size, int) else size for size in value.aval.shape]
        outputs.append(helper.make_tensor_value_info(name, graph.type_of(value.aval.dtype), shape))
    network = helper.make_graph(graph.nodes, "network", inputs, outputs, graph.initializers)
    model = helper.make_model(network, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="tilewe_jax", ir_version=9)
    helper.set_model_props(model, about or {})
    onnx.checker.check_model(model, full_check=True)
    return model


class _Graph:
    """A graph under construction, in which values are represented by their names."""

    def __init__(self, onnx: Any, input_name: str) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._input = input_name
        self._batch: str | None = None
        self._count = 0

    def inline(self, jaxpr: Any, consts: Sequence[str], arguments: Sequence[str]) -> list[str]:
        """Add the nodes of a jaxpr, and return its results."""
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments], strict=True))

        def read(variable: Any) -> str:
            is_literal = hasattr(variable, "val")
            return self.constant(np.asarray(variable.val, variable.aval.dtype)) if is_literal else values[variable]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [read(variable) for variable in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    def node(self, operator: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node with one result, and return the result."""
        output = output or self._name()
        self.nodes.append(self._onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, value: Any) -> str:
        """Return a constant; equal constants share one initializer."""
        array = np.asarray(value)
        if array.dtype == np.uint32:
            array = array.astype(np.int64)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self._name()
            self.initializers.append(self._onnx.numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def type_of(self, dtype: Any) -> int:
        """Return the ONNX code of a dtype. Raises ``ValueError`` for unsupported dtypes."""
        types = {"float32": "FLOAT", "int32": "INT32", "int64": "INT64", "bool": "BOOL", "int8": "INT8", "int16": "INT16"}
        if str(dtype) not in types:
            raise ValueError(f"dtype {dtype} cannot be exported to ONNX")
        number: int = self._onnx.TensorProto.DataType.Value(types[str(dtype)])
        return number

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _integers(self, values: Sequence[Any]) -> str:
        return self.constant(np.array([int(value) for value in values], np.int64))

    def _batch_size(self) -> str:
        """Return the size of the batch, ``int64[1]``."""
        if self._batch is None:
            self._batch = self.node("Shape", [self._input], start=0, end=1)
        return self._batch

    def _shape(self, sizes: Sequence[Any]) -> str:
        """Return a shape, ``int64[n]``, which may contain the symbolic size of the batch."""
        if all(isinstance(size, int) for size in sizes):
            return self._integers(sizes)
        parts = [self._integers([size]) if isinstance(size, int) else self._batch_size() for size in sizes]
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)

    def _reshape(self, value: str, sizes: Sequence[Any]) -> str:
        return self.node("Reshape", [value, self._integers([size if isinstance(size, int) else -1 for size in sizes])])

    def _transpose(self, value: str, order: Sequence[int]) -> str:
        return value if list(order) == sorted(order) else self.node("Transpose", [value], perm=[int(axis) for axis in order])

    def _cast(self, value: str, dtype: Any) -> str:
        return self.node("Cast", [value], to=self.type_of(dtype))

    def _equation(self, equation: Any, inputs: list[str]) -> list[str]:
        """Add the nodes of an equation of a jaxpr, and return its results."""
        name, params = equation.primitive.name, equation.params
        values = [variable.aval for variable in equation.invars]
        for variable in (*equation.invars, *equation.outvars):
            if any(not isinstance(size, int) and str(size) != "batch" for size in variable.aval.shape):
                raise ValueError(f"primitive {name} with the symbolic shape {variable.aval.shape} cannot be exported to ONNX")
        if name in _CALLS:
            inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call") if key in params)
            closed = hasattr(inner, "consts")
            consts = [self.constant(value) for value in inner.consts] if closed else []
            return self.inline(inner.jaxpr if closed else inner, consts, inputs)
        if name in _SIMPLE:
            return [self.node(_SIMPLE[name], inputs)]
        method = getattr(self, f"op_{name.replace('-', '_')}", None)
        if name in _REDUCTIONS:
            axes = self._integers(params["axes"])
            return [self.node(_REDUCTIONS[name], [inputs[0], axes], keepdims=0)] if params["axes"] else inputs
        if method is None:
            raise ValueError(f"primitive {name} cannot be exported to ONNX")
        result: str = method(inputs, values, params, equation.outvars[0].aval)
        return [result]

    # Each method converts a primitive: names of its arguments, their avals, its parameters, and the aval of its result.

    def op_argmax(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        # Both return the first of several maxima.
        value = self._cast(inputs[0], "int32") if given[0].dtype == bool else inputs[0]
        return self._cast(self.node("ArgMax", [value], axis=int(params["axes"][0]), keepdims=0), out.dtype)

    def op_broadcast_in_dim(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        places = [int(axis) for axis in params["broadcast_dimensions"]]
        ones: list[Any] = [1] * len(out.shape)
        for place, size in zip(places, given[0].shape, strict=True):
            ones[place] = size
        value = inputs[0] if tuple(ones) == tuple(given[0].shape) else self._reshape(inputs[0], ones)
        return value if tuple(ones) == tuple(out.shape) else self.node("Expand", [value, self._shape(out.shape)])

    def op_clamp(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        low, value, high = inputs
        return self.node("Min", [self.node("Max", [value, low]), high])

    def op_concatenate(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Concat", inputs, axis=int(params["dimension"]))

    def op_conv_general_dilated(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        numbers = params["dimension_numbers"]
        low, high = zip(*params["padding"], strict=True)
        if any(step != 1 for step in params["lhs_dilation"]) or params["batch_group_count"] != 1:
            raise ValueError("transposed convolutions cannot be exported to ONNX")
        value = self.node(
            "Conv",
            [self._transpose(inputs[0], numbers.lhs_spec), self._transpose(inputs[1], numbers.rhs_spec)],
            pads=[*low, *high],
            strides=list(params["window_strides"]),
            dilations=list(params["rhs_dilation"]),
            group=params["feature_group_count"],
        )
        return self._transpose(value, np.argsort(numbers.out_spec).tolist())

    def op_convert_element_type(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self._cast(inputs[0], out.dtype)

    def op_dot_general(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        (left_summed, right_summed), (left_batch, right_batch) = params["dimension_numbers"]
        left_rank, right_rank = len(given[0].shape), len(given[1].shape)
        if not left_batch and right_rank == 2 and tuple(left_summed) == (left_rank - 1,) and tuple(right_summed) == (0,):
            return self.node("MatMul", inputs)
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        left = [next(letters) for _ in range(left_rank)]
        right = [""] * right_rank
        for i, j in zip((*left_batch, *left_summed), (*right_batch, *right_summed), strict=True):
            right[j] = left[i]
        right = [letter or next(letters) for letter in right]
        kept = [letter for i, letter in enumerate(left) if i not in (*left_batch, *left_summed)]
        kept += [letter for j, letter in enumerate(right) if j not in (*right_batch, *right_summed)]
        result = "".join([left[i] for i in left_batch] + kept)
        return self.node("Einsum", inputs, equation=f"{''.join(left)},{''.join(right)}->{result}")

    def op_erfc(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Sub", [self.constant(np.ones((), out.dtype)), self.node("Erf", inputs)])

    def op_gather(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        """Gather rows by index, with the same leading batch axes in operand and indices."""
        numbers, shape = params["dimension_numbers"], given[0].shape
        batched, taken = len(numbers.operand_batching_dims), given[1].shape[-1]
        rows = tuple(range(batched)), tuple(range(batched, batched + taken))
        rest = shape[batched + taken :]
        takes_rows = (
            tuple(numbers.operand_batching_dims) == tuple(numbers.start_indices_batching_dims) == rows[0]
            and tuple(numbers.start_index_map) == tuple(numbers.collapsed_slice_dims) == rows[1]
            and tuple(numbers.offset_dims) == tuple(range(len(out.shape) - len(rest), len(out.shape)))
            and tuple(params["slice_sizes"])[batched + taken :] == tuple(rest)
        )
        if not takes_rows:
            raise ValueError(f"gather cannot be exported to ONNX with {numbers}")
        limits = self._integers([shape[axis] - 1 for axis in rows[1]])
        index = self.node("Max", [self._cast(inputs[1], "int64"), self._integers([0])])
        indices = self.node("Min", [index, limits])
        return self.node("GatherND", [inputs[0], indices], batch_dims=batched)

    def op_integer_pow(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Pow", [inputs[0], self.constant(np.asarray(params["y"], out.dtype))])

    def op_iota(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        if not all(isinstance(size, int) for size in out.shape):
            raise ValueError("iota over the batch cannot be exported to ONNX")
        line = np.arange(out.shape[params["dimension"]]).astype(out.dtype)
        places = [-1 if axis == params["dimension"] else 1 for axis in range(len(out.shape))]
        return self.constant(np.broadcast_to(line.reshape(places), out.shape))

    def op_ne(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Not", [self.node("Equal", inputs)])

    def op_pad(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        low, high, between = zip(*params["padding_config"], strict=True)
        if any(between) or min(low + high) < 0:
            raise ValueError("interior and negative padding cannot be exported to ONNX")
        return self.node("Pad", [inputs[0], self._integers(low + high), inputs[1]])

    def op_reduce_and(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        numbers = [self._cast(inputs[0], "int32"), self._integers(params["axes"])]
        return self._cast(self.node("ReduceMin", numbers, keepdims=0), "bool")

    def op_reduce_or(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        numbers = [self._cast(inputs[0], "int32"), self._integers(params["axes"])]
        return self._cast(self.node("ReduceMax", numbers, keepdims=0), "bool")

    def op_rem(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Mod", inputs, fmod=1)

    def op_reshape(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self._reshape(inputs[0], out.shape)

    def op_rsqrt(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Reciprocal", [self.node("Sqrt", inputs)])

    def op_scatter_add(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        """Add rows at indices, with one leading batch axis; rows with an index out of bounds are dropped."""
        numbers, (operand, indices, updates) = params["dimension_numbers"], (value.shape for value in given)
        count, depth = operand[1], len(indices) - 1
        adds_rows = (
            tuple(numbers.operand_batching_dims) == tuple(numbers.scatter_indices_batching_dims) == (0,)
            and tuple(numbers.inserted_window_dims) == tuple(numbers.scatter_dims_to_operand_dims) == (1,)
            and tuple(numbers.update_window_dims) == tuple(range(depth, len(updates)))
            and indices[-1] == 1
        )
        if not adds_rows:
            raise ValueError(f"scatter-add cannot be exported to ONNX with {numbers}")
        # Dropped rows are added to an extra row, which is cut off at the end.
        index = self._cast(inputs[1], "int64")
        too_low = self.node("Less", [index, self._integers([0])])
        too_high = self.node("Less", [self._integers([count - 1]), index])
        outside = self.node("Or", [too_low, too_high])
        index = self.node("Where", [outside, self._integers([count]), index])
        extra = self.node("Expand", [self.constant(np.zeros(1, out.dtype)), self._shape([operand[0], 1, *operand[2:]])])
        padded = self.node("Concat", [inputs[0], extra], axis=1)
        first, step = self.constant(np.int64(0)), self.constant(np.int64(1))
        games = self.node("Range", [first, self.node("Squeeze", [self._batch_size()]), step])
        games = self.node("Reshape", [games, self._integers([-1] + [1] * depth)])
        games = self.node("Expand", [games, self._shape(indices)])
        pairs = self.node("Concat", [games, index], axis=depth)
        added = self.node("ScatterND", [padded, pairs, inputs[2]], reduction="add")
        return self.node("Slice", [added, self._integers([0]), self._integers([count]), self._integers([1])])

    def op_select_n(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        which, *cases = inputs
        if len(cases) != 2:
            raise ValueError("select_n with more than two cases cannot be exported to ONNX")
        return self.node("Where", [which, cases[1], cases[0]])

    def op_slice(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        starts, ends, steps = params["start_indices"], params["limit_indices"], params["strides"] or [1] * len(out.shape)
        cut = [axis for axis, size in enumerate(given[0].shape) if isinstance(size, int) and size != out.shape[axis]]
        if not cut:
            return inputs[0]
        rows = ([values[axis] for axis in cut] for values in (starts, ends))
        return self.node("Slice", [inputs[0], *map(self._integers, rows), *map(self._integers, (cut, [steps[i] for i in cut]))])

    def op_square(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Mul", [inputs[0], inputs[0]])

    def op_squeeze(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self.node("Squeeze", [inputs[0], self._integers(params["dimensions"])])

    def op_stack(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        axis = self._integers([params["axis"]])
        return self.node("Concat", [self.node("Unsqueeze", [value, axis]) for value in inputs], axis=int(params["axis"]))

    def op_transpose(self, inputs: list[str], given: Any, params: Any, out: Any) -> str:
        return self._transpose(inputs[0], params["permutation"])
