//! Layers at the gateway, here, and on both sides.

use std::fs;

use pushdown::Sample;
use pushdown_client::{Mode, PushdownReaderBuilder, Row, Split};
use pushdown_testkit::networks;
use tempfile::TempDir;

use super::world::{World, photos, rows, run};

const PREPARED: &str = "decode | resize(224, 224) | to_float | normalize(imagenet)";

fn world() -> (World, TempDir) {
    let models = networks(&["squeezenet"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let objects = photos().into_iter().take(6).collect();
    (World::with_flags(objects, &flags), models)
}

fn floats(row: &Row) -> Vec<f32> {
    match &row.value {
        Ok(Sample::Tensor(tensor)) => {
            let (words, _) = tensor.data().as_chunks::<4>();
            words.iter().map(|word| f32::from_le_bytes(*word)).collect()
        }
        other => panic!("{}: {other:?}", row.key),
    }
}

/// Law 1 for layers: within `1e-5` of the largest element.
fn assert_close(found: &[Row], expected: &[Row], how: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.key, expected.key);
        let (found_floats, expected) = (floats(found), floats(expected));
        let largest = expected
            .iter()
            .fold(0_f32, |largest, element| largest.max(element.abs()));
        let differences = found_floats.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let far = differences.fold(0_f32, f32::max) / largest;
        assert!(far <= 1e-5, "{how}, {}: {far}", found.key);
    }
}

#[test]
fn layers_run_on_either_side_with_the_same_result() {
    let (world, models) = world();
    let folder = world.folder().join("weights");
    let reader = |pipeline: &str| -> PushdownReaderBuilder { world.reader(pipeline).cache(&folder) };
    let whole = format!("{PREPARED} | model(squeezenet, until=cut:14)");
    let cut =
        format!("{PREPARED} | model(squeezenet, until=cut:6) | model(squeezenet, from=cut:6, until=cut:14)");

    let pushed = rows(reader(&whole).split(Split::Full));
    assert!(
        !folder.exists(),
        "no weights are fetched where no layers run here"
    );
    let plain = rows(reader(&whole).mode(Mode::Plain));
    assert_close(&plain, &pushed, "plain");
    let kept: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let [kept] = kept.as_slice() else {
        panic!("one file is kept: {kept:?}")
    };
    assert_eq!(
        fs::read(kept).unwrap(),
        fs::read(models.path().join("squeezenet.onnx")).unwrap()
    );

    for stage in 0..=6 {
        let split = rows(reader(&cut).split(Split::At(stage)));
        assert!(split.iter().all(|row| row.stage == stage));
        assert_close(&split, &pushed, &format!("cut at {stage}"));
    }
    let of_folder = rows(world.reader(&whole).models(models.path()).mode(Mode::Plain));
    assert_close(&of_folder, &pushed, "from a folder");
    // What was kept and has changed since is fetched again.
    fs::write(kept, b"broken").unwrap();
    assert_close(&rows(reader(&whole).mode(Mode::Plain)), &pushed, "fetched again");
}

#[test]
fn networks_that_are_not_there() {
    let (world, _models) = world();
    let fault = |pipeline: &str| run(world.reader(pipeline).build()).unwrap_err().to_string();
    let endpoint = world.endpoint();
    let unknown = fault(&format!("{PREPARED} | model(resnet)"));
    let expected = format!("expected one of those that {endpoint} serves: squeezenet");
    assert!(unknown.ends_with(&expected), "{unknown}");
    let bare = World::with_photos(1);
    let none = run(bare.reader(&format!("{PREPARED} | model(resnet)")).build()).unwrap_err();
    assert!(
        none.to_string().contains("found the unknown network `resnet`"),
        "{none}"
    );
}
