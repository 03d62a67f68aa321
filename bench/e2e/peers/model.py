"""A model that ONNX Runtime runs on the pixels of a batch: up to its features where it says where they are, else all of it.

Weights are NAME.onnx, what its input has to look like is NAME.json, as `scripts/models.sh` makes both; a model without the
latter was trained as most are on ImageNet.

Given the gateway's own pixels, EfficientNet-Lite0's features are the gateway's but for 0.0003. A peer's own pixels differ from
those by a level at most, of which the features make 0.006 on average and 0.2 at most, where the largest are 3.5; cosines are
0.9995 and more.
"""

import json
import pathlib

import numpy as np
import onnx.utils
import onnxruntime

SHORTER = {"lite0": "efficientnet_lite0"}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "value_range": 1, "layout": "chw"}
# How many samples at once where the graph takes any number. EfficientNet-Lite0, CPU milliseconds for one, decoding included:
# 12.7 by ones, 12.0 by fours, 12.3 by eights, 13.4 by all 32 of a batch.
TOGETHER = 4


class Model:
    """A session, and what makes pixels its input."""

    def __init__(self, name: str, models: pathlib.Path, cores: int) -> None:
        """As many threads as there are cores, all on one sample or one batch."""
        name = SHORTER.get(name, name)
        described = models / f"{name}.json"
        about = IMAGENET | (json.loads(described.read_text()) if described.exists() else {})
        self.channels_first = about["layout"] == "chw"
        mean, std = (np.array(about[what], np.float32) for what in ("mean", "std"))
        self.factor = (about["value_range"] / 255 / std).astype(np.float32)
        self.offset = (-mean / std).astype(np.float32)

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = cores, 1
        # Threads that wait for work in a loop would take the CPU from those that decode.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Initialisers that nothing reads are worth a line each.
        options.log_severity_level = 3
        model = onnx.load(models / f"{name}.onnx")
        until = about.get("freeze_point")
        if until:
            # Only tensors whose shapes are known can be cut at.
            whole = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model))
            model = whole.extract_model([model.graph.input[0].name], [until])
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        self.input, self.output = self.session.get_inputs()[0], self.session.get_outputs()[-1].name
        # Some graphs have a batch of one written into them.
        self.together = self.input.shape[0] if isinstance(self.input.shape[0], int) else TOGETHER
        self.settings = f"onnxruntime {onnxruntime.__version__}, {cores} threads, {self.together} at once, to `{self.output}`"

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """What it makes of photos, as f16."""
        made = []
        for start in range(0, len(pixels), self.together):
            values = pixels[start : start + self.together] * self.factor
            values += self.offset
            if self.channels_first:
                values = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
            made.extend(self.session.run([self.output], {self.input.name: values})[0])
        return np.stack(made).astype(np.float16)
