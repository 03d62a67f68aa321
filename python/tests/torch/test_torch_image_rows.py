"""`pushdown.torch.Loader` over images in a column of Parquet objects."""

from __future__ import annotations

import io
import pathlib
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import pushdown
import pushdown.torch as pt
from pushdown import Plan, Store
from torch_samples import PIPELINE, samples

pytestmark = pytest.mark.filterwarnings("error")

PHOTOS = pathlib.Path(__file__).resolve().parents[3] / "testkit/fixtures/photos"
NAMES = ("jpeg_420.jpg", "jpeg_444.jpg", "png_rgb.png", "png_grey.png", "jpeg_large.jpg")


@pytest.fixture(scope="module")
def images(world):
    """Two files of ten rows each."""
    world.s3.create_bucket(Bucket="rows")
    for part in range(2):
        rows = range(part * 10, part * 10 + 10)
        images = [{"bytes": (PHOTOS / NAMES[row % 5]).read_bytes(), "path": NAMES[row % 5]} for row in rows]
        body = io.BytesIO()
        pq.write_table(pa.table({"image": images, "label": list(rows)}), body, row_group_size=4)
        world.put("rows", f"train-{part}.parquet", body.getvalue())
    return "s3://rows/train-*.parquet"


def test_a_loader_reads_images_and_labels(images, endpoint):
    with pt.Loader(images, PIPELINE, store=Store(endpoint=endpoint), batch_size=4, labels="label", seed=7) as loader:
        assert len(loader) == 5 and loader.samples == 20
        found = samples(loader)
        assert sorted(sample.label for sample in found) == list(range(20))
        assert [sample.label for sample in found] == [sample.index for sample in found]
        assert [sample.position for sample in found] == list(range(20))
        batch = next(iter(loader))
        x, y = batch
        assert (x.shape, x.dtype, y.dtype) == ((4, 3, 32, 32), torch.float32, torch.int64)
        assert loader.epoch == 1


def test_a_loader_resumes_rows(images, endpoint):
    options = {"store": Store(endpoint=endpoint), "batch_size": 4, "labels": "label", "seed": 7}
    with pt.Loader(images, PIPELINE, **options) as loader:
        whole = samples(loader)
    with pt.Loader(images, PIPELINE, **options) as loader:
        batches = iter(loader)
        first = samples([next(batches), next(batches)])
        state = loader.state_dict()
    with pt.Loader(pushdown.Parquet(images), PIPELINE, **options) as loader:
        loader.load_state_dict(state)
        assert first + samples(loader) == whole


def test_a_loader_starts_again_after_a_look(images, endpoint):
    with pt.Loader(images, PIPELINE, store=Store(endpoint=endpoint), batch_size=4, labels="label", seed=7) as loader:
        whole = samples(loader)
        loader.set_epoch(0)
        batches = iter(loader)
        next(batches)
        assert len(loader) == 5 and loader.state_dict()["rows_read"] == [[1, 4]]
        with pickle.loads(pickle.dumps(loader)) as copied:
            assert samples(copied) == whole
        assert samples(loader) == whole
        with pickle.loads(pickle.dumps(loader)) as copied:
            assert copied.epoch == 1


def test_data_sets_do_not_read_rows(images, endpoint):
    refused = r"rows of Parquet objects are {}: expected pushdown\.torch\.Loader, found {}$"
    for make, text in (
        (pt.Dataset, refused.format("not shared by workers", "Dataset")),
        (pt.MapDataset, refused.format("read in batches only", "MapDataset")),
    ):
        with pytest.raises(pushdown.ConfigError, match=text):
            make(images, PIPELINE, store=Store(endpoint=endpoint))


def test_options_of_objects_are_refused(images, endpoint):
    store = Store(endpoint=endpoint)
    for options, refused in (
        ({"plan": Plan(epochs=3)}, "epochs=3 does not apply to rows of Parquet objects"),
        ({"value_cache": "/tmp/x"}, r"value_cache=.* does not apply to rows of Parquet objects: expected none"),
    ):
        with pytest.raises(pushdown.ConfigError, match=refused):
            pt.Loader(images, PIPELINE, store=store, **options)
