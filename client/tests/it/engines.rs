//! A gateway with another version of ONNX Runtime than this host. What the command line reports about it is tested there.

use pushdown_client::reader::{Mode, Row, Split};
use pushdown_testkit::{model_folder, other_onnxruntime};

use super::{
    models::PREPARATION,
    world::{Objects, World, photos, read_rows},
};

/// Features of two versions must not be mixed, so the reader runs the model itself.
#[test]
fn values_next_to_another_onnx_runtime_are_those_of_plain_reading() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let flags = [
        format!("--models={}", models.path().display()),
        format!("--onnxruntime={}", other_onnxruntime().display()),
    ];
    let large = photos().into_iter().filter(|(_, bytes)| bytes.len() > 5_000);
    let objects: Objects = large.take(6).collect();
    let world = World::with_flags(objects, &flags);
    let weights = world.folder().join("weights");
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let reader = || world.reader(&pipeline).model_cache(&weights);
    let values = |rows: Vec<Row>| rows.into_iter().map(|row| (row.key, row.value));
    let plain = values(read_rows(reader().mode(Mode::Plain)));
    let pushed = values(read_rows(reader().split(Split::At(4))));
    assert!(plain.eq(pushed), "expected the values of plain reading");
}
