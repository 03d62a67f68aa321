"""A model that ONNX Runtime runs on the pixels of a batch: up to its features if its description names them, else to its end.

`scripts/models.sh` writes the weights as NAME.onnx and the description of the input as NAME.json; a model without a
description has the usual ImageNet preprocessing.

On the gateway's pixels, EfficientNet-Lite0's features differ from the gateway's by at most 0.0003. A peer's own pixels differ
by at most one level, and its features by 0.006 on average and at most 0.2, where the largest are 3.5; cosines are at least
0.9995.
"""

import json
import pathlib

import numpy as np
import onnx.utils
import onnxruntime

ALIASES = {"lite0": "efficientnet_lite0"}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "value_range": 1, "layout": "chw"}
# The micro-batch if the graph accepts any. EfficientNet-Lite0, CPU milliseconds per sample, decoding included: 12.7 with 1, 12.0
# with 4, 12.3 with 8, 13.4 with 32.
MICRO_BATCH = 4


class Model:
    """A session, and the preprocessing of its input."""

    def __init__(self, name: str, models: pathlib.Path, cores: int) -> None:
        """Runs with one thread per core, all on the same micro-batch."""
        name = ALIASES.get(name, name)
        description = models / f"{name}.json"
        about = IMAGENET | (json.loads(description.read_text()) if description.exists() else {})
        self.channels_first = about["layout"] == "chw"
        mean, std = (np.array(about[what], np.float32) for what in ("mean", "std"))
        self.factor = (about["value_range"] / 255 / std).astype(np.float32)
        self.offset = (-mean / std).astype(np.float32)

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = cores, 1
        # Spinning threads would take CPU from decoding.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Unused initialisers would log a line each.
        options.log_severity_level = 3
        model = onnx.load(models / f"{name}.onnx")
        until = about.get("freeze_point")
        if until:
            # A cut requires a known shape.
            whole = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model))
            model = whole.extract_model([model.graph.input[0].name], [until])
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        self.input, self.output = self.session.get_inputs()[0], self.session.get_outputs()[-1].name
        # Some graphs have a fixed batch of one.
        self.micro_batch = self.input.shape[0] if isinstance(self.input.shape[0], int) else MICRO_BATCH
        runtime = f"onnxruntime {onnxruntime.__version__}, {cores} threads"
        self.settings = f"{runtime}, micro-batches of {self.micro_batch}, to `{self.output}`"

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """The outputs for the pixels, as f16."""
        outputs = []
        for start in range(0, len(pixels), self.micro_batch):
            values = pixels[start : start + self.micro_batch] * self.factor
            values += self.offset
            if self.channels_first:
                values = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
            outputs.extend(self.session.run([self.output], {self.input.name: values})[0])
        return np.stack(outputs).astype(np.float16)
