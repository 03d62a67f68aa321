//! Models with data files (`scripts/external_models.py`): their results, and files that are refused.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use onnx_protobuf::{Message as _, ModelProto, StringStringEntryProto};
use pushdown::{
    Context, Error, ErrorKind, Image, Pipeline, Sample, Tensor,
    step::model::{Boundary, MAX_MODEL_BYTES, Model, ModelFolder},
};

use super::{
    models::{RUNTIME, TOLERANCE, distance, floats, models},
    small_models::{check_against_onnxruntime, model},
};

/// A temporary folder of models.
struct TestFolder(PathBuf);

impl Drop for TestFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

impl TestFolder {
    /// A folder with copies of some of the tiny models and their files.
    fn new(test: &str, names: &[&str]) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("external_models_{test}"));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        for file in fs::read_dir(models().join("tiny")).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            let is_file_of = |model: &&str| name.starts_with(&format!("{model}.onnx"));
            if names.iter().any(is_file_of) {
                fs::copy(file.path(), folder.join(&name)).unwrap();
            }
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn folder(&self) -> ModelFolder {
        ModelFolder::open(&self.0, Ok(RUNTIME.clone())).unwrap()
    }

    fn find(&self, name: &str) -> Result<Arc<Model>, Error> {
        self.folder().find(name)
    }

    fn digest(&self, name: &str) -> String {
        self.find(name).unwrap().description().digest.clone()
    }
}

/// Compares whole models and every cut, in single runs and in batches, with ONNX Runtime's Python API on the same files.
#[test]
fn models_with_data_files_agree_with_onnxruntime() {
    for (name, files) in [
        ("external", &["external.onnx.data"][..]),
        ("external_constants", &["external_constants.onnx.data"]),
        (
            "external_each",
            &[
                "external_each.onnx.w1",
                "external_each.onnx.w2",
                "external_each.onnx.w3",
                "external_each.onnx.w4",
                "external_each.onnx.w5",
                "external_each.onnx.w6",
            ],
        ),
        ("external_inner", &["external_inner.onnx.data"]),
        ("digits", &[]),
    ] {
        let (model, golden) = model(name);
        let description = model.description();
        let found: Vec<_> = description.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(found, files);
        let length = |name: &str| fs::metadata(models().join("tiny").join(name)).unwrap().len();
        let data = description.files.iter().map(|file| {
            assert_eq!(file.bytes, length(&file.name));
            file.bytes
        });
        let data: u64 = data.sum();
        assert_eq!(description.bytes, data + length(&format!("{name}.onnx")));
        check_against_onnxruntime(&model, &golden);
        assert!(model.memory_bytes() > data, "{name}: {}", model.memory_bytes());
    }
}

/// Cut points and results do not depend on where the weights are stored.
#[test]
fn internal_and_external_weights_are_equivalent() {
    let (internal, golden) = model("digits");
    let (external, _) = model("external");
    let (one, other) = (internal.description(), external.description());
    assert_eq!(one.cut_points, other.cut_points);
    assert_eq!(one.left_out, other.left_out);
    assert_ne!(one.digest, other.digest);
    assert!(one.cut_points.len() >= 4);
    for cut in 0..=internal.end() {
        let values = internal.run(Boundary::Input, cut, &golden.inputs).unwrap();
        assert!(values == external.run(Boundary::Input, cut, &golden.inputs).unwrap());
        // The layers after the cut.
        let ends = internal.run(Boundary::Cut(cut), internal.end(), &values).unwrap();
        assert!(ends == external.run(Boundary::Cut(cut), internal.end(), &values).unwrap());
    }
}

fn tensor(sample: Sample) -> Tensor {
    match sample {
        Sample::Tensor(tensor) => tensor,
        other => panic!("expected a tensor, found {other:?}"),
    }
}

/// From a photo to ten scores, split at every stage.
#[test]
fn models_of_one_channel_accept_grey_images() {
    let folder = ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).unwrap();
    let pixels = (0..40 * 30 * 3_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8);
    let image = Image::new(40, 30, pixels.collect()).unwrap();
    for model in ["digits", "external"] {
        let text = format!(
            "decode | resize(28, 28) | grayscale | to_float | normalize(mean=0.1307, std=0.3081) | \
             model({model}, until=cut:1) | model({model}, from=cut:1) | cast(f16) | cast(f32)"
        );
        let pipeline = Pipeline::parse_with(&text, &folder).unwrap();
        let run = |stretch, value: Sample| pipeline.run(stretch, value, &Context::new(b"")).unwrap();
        let whole = tensor(run(1..9, Sample::Image(image.clone())));
        assert_eq!(whole.shape(), [10]);
        let grey = tensor(run(1..3, Sample::Image(image.clone())));
        assert_eq!(grey.shape(), [1, 28, 28]);
        for split in 2..9 {
            let value = run(1..split, Sample::Image(image.clone()));
            let error = distance(&floats(&tensor(run(split..9, value))), &floats(&whole));
            assert!(error <= 1e-3, "{model} split at {split}: {error}");
        }
        let prepared = tensor(run(1..5, Sample::Image(image.clone())));
        let model = folder.find(model).unwrap();
        let scores = model.run(Boundary::Input, model.end(), &[prepared]).unwrap();
        let from_pipeline = tensor(run(1..7, Sample::Image(image.clone())));
        assert!(distance(&floats(&from_pipeline), &floats(&scores[0])) <= TOLERANCE);
    }
    let fault = |preparation: &str| {
        let text = format!("decode | resize(28, 28) | {preparation} | model(digits)");
        Pipeline::parse_with(&text, &folder).unwrap_err().to_string()
    };
    let takes = "takes f32 of 1x28x28 for `x` of the model `digits`, found";
    for (preparation, found) in [
        ("to_float", "f32 of 3x28x28"),
        ("grayscale", "u8 of 1x28x28"),
        ("grayscale | to_float | layout(hwc)", "f32 of 28x28x1"),
    ] {
        let fault = fault(preparation);
        assert!(fault.contains(&format!("{takes} {found}")), "{fault}");
    }
}

/// The digest identifies a model to readers and in `ETag`s. It covers the weights in every file.
#[test]
fn changed_weights_change_the_digest() {
    let models = TestFolder::new("other_weights", &["external_each"]);
    let before = models.digest("external_each");
    assert_eq!(
        models.digest("external_each"),
        before,
        "the digest is deterministic"
    );
    for weight in 1..=6 {
        let path = models.path(&format!("external_each.onnx.w{weight}"));
        let old = fs::read(&path).unwrap();
        let mut new = old.clone();
        new[5] ^= 1;
        fs::write(&path, new).unwrap();
        assert_ne!(models.digest("external_each"), before, "w{weight}");
        fs::write(&path, old).unwrap();
    }
    assert_eq!(models.digest("external_each"), before);
    fs::write(models.path("external_each.json"), r#"{"layout": "chw"}"#).unwrap();
    assert_ne!(
        models.digest("external_each"),
        before,
        "the digest covers the card"
    );
}

/// Data files are not models. They can be opened by their digest, but not through a symbolic link.
#[test]
fn data_files_are_not_listed_as_models() {
    let models = TestFolder::new("listed", &["external", "external_each"]);
    let folder = models.folder();
    let mut names = Vec::new();
    folder.inspect_all(|name, model| {
        assert!(model.is_ok(), "{name}: {model:?}");
        names.push(name.to_owned());
    });
    assert_eq!(names, ["external", "external_each"]);
    let error = folder.find("external.onnx").unwrap_err().to_string();
    assert!(error.contains("served: external, external_each"), "{error}");
    let description = folder.find("external").unwrap().description().clone();
    let digests = [&description.digest, &description.files[0].digest];
    for (digest, file) in digests.into_iter().zip(["external.onnx", "external.onnx.data"]) {
        let mut opened = folder.open_file(digest, |_| true).expect(file).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut opened, &mut bytes).unwrap();
        assert!(bytes == fs::read(models.path(file)).unwrap(), "{file}");
    }
    assert!(folder.open_file(&"0".repeat(64), |_| true).is_none());
    fs::remove_file(models.path("external.onnx.data")).unwrap();
    symlink("external.onnx", models.path("external.onnx.data")).unwrap();
    let opened = folder.open_file(digests[1], |_| true).expect("known");
    assert!(opened.is_err(), "a symbolic link is not followed");
}

/// Weights are read again for each range of layers. They have to equal those that were inspected.
#[test]
fn replaced_files_are_detected() {
    let models = TestFolder::new("replaced", &["external"]);
    let (model, data) = (
        models.find("external").unwrap(),
        models.path("external.onnx.data"),
    );
    let (_, golden) = super::small_models::model("external");
    let run = || {
        model.release();
        model.run(Boundary::Input, model.end(), &golden.inputs[..1])
    };
    run().unwrap();
    let old = fs::read(&data).unwrap();
    let fault = |what: &str| {
        let error = run().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel);
        let error = error.to_string();
        assert!(error.starts_with("the model `external`: "), "{error}");
        assert!(error.contains(what), "{what} in {error}");
    };
    let mut other = old.clone();
    other[100] ^= 1;
    fs::write(&data, other).unwrap();
    fault("the data file `external.onnx.data` has the digest");
    fault("has it been replaced?");
    fs::write(&data, &old[..old.len() - 1]).unwrap();
    fault("has the digest");
    fs::write(&data, [&old[..], b"more"].concat()).unwrap();
    fault("has the digest");
    fs::remove_file(&data).unwrap();
    fault("the data file `external.onnx.data` cannot be read: No such file");
    fs::write(models.path("elsewhere"), &old).unwrap();
    symlink("elsewhere", &data).unwrap();
    fault("found a symbolic link, expected a regular file");
    fs::remove_file(&data).unwrap();
    fs::write(&data, &old).unwrap();
    run().unwrap();
}

/// Changes the location of the last weight of a model.
fn change_location(path: &Path, change: impl Fn(&mut Vec<StringStringEntryProto>)) {
    let mut model = ModelProto::parse_from_bytes(&fs::read(path).unwrap()).unwrap();
    let weights = &mut model.graph.as_mut().unwrap().initializer;
    let weight = weights.iter_mut().find(|weight| weight.name == "scores.weight");
    change(&mut weight.expect("external weights").external_data);
    fs::write(path, model.write_to_bytes().unwrap()).unwrap();
}

#[test]
fn unusable_data_files_are_refused_by_name() {
    let models = TestFolder::new("refused", &["external"]);
    let (path, data) = (models.path("external.onnx"), models.path("external.onnx.data"));
    let (model, weights) = (fs::read(&path).unwrap(), fs::read(&data).unwrap());
    let check = |reason: &str, kind: ErrorKind| {
        let error = models.find("external").expect_err(reason);
        assert_eq!(error.kind(), kind, "{error}");
        let error = error.to_string();
        assert!(
            error.starts_with("the model `external` cannot be used: "),
            "{error}"
        );
        assert!(error.contains(reason), "{reason} in {error}");
        // Restores the files.
        drop(fs::remove_file(&data));
        drop(fs::remove_dir(&data));
        fs::write(&path, &model).unwrap();
        fs::write(&data, &weights).unwrap();
    };
    let set = |key: &'static str, value: &str| {
        change_location(&path, |entries| {
            entries.retain(|entry| entry.key != key);
            entries.push(StringStringEntryProto {
                key: key.to_owned(),
                value: value.to_owned(),
                ..StringStringEntryProto::default()
            });
        });
    };
    let invalid = ErrorKind::InvalidModel;
    let unreadable = "the data file `external.onnx.data` cannot be read";
    fs::remove_file(&data).unwrap();
    check(&format!("{unreadable}: No such file"), invalid);
    fs::write(&data, &weights[..weights.len() - 1]).unwrap();
    check("31360 bytes, expected them within its 35967", invalid);
    fs::write(&data, b"").unwrap();
    check("expected them within its 0", invalid);
    // Not followed, even if the target is valid.
    fs::rename(&data, models.path("elsewhere")).unwrap();
    symlink(models.path("elsewhere"), &data).unwrap();
    check(
        &format!("{unreadable}: found a symbolic link, expected a regular file"),
        invalid,
    );
    fs::remove_file(&data).unwrap();
    fs::create_dir(&data).unwrap();
    check(&format!("{unreadable}: expected a regular file"), invalid);
    fs::remove_file(&data).unwrap();
    assert!(Command::new("mkfifo").arg(&data).status().unwrap().success());
    check(&format!("{unreadable}: expected a regular file"), invalid);
    for name in [
        "../external.onnx.data",
        "/etc/passwd",
        "./external.onnx.data",
        "..",
        "",
    ] {
        set("location", name);
        check(
            &format!("`scores.weight` in the file {name:?}, expected the bare name"),
            invalid,
        );
    }
    set("location", "other.data");
    check("the data file `other.data` cannot be read: No such file", invalid);
    for (key, value, reason) in [
        (
            "offset",
            "-4",
            "found the offset \"-4\" for the weights of `scores.weight`",
        ),
        ("offset", "18446744073709551612", "expected them within its 35968"),
        ("offset", "4609", "at byte 4609 of the file `external.onnx.data`"),
        (
            "length",
            "9223372036854775807",
            "found 9223372036854775807 bytes for the weights of `scores.weight`",
        ),
        ("length", "4", "expected 31360 for their type and shape"),
    ] {
        set(key, value);
        check(reason, invalid);
    }
    // A sparse file takes no space.
    let huge = fs::File::options().write(true).open(&data).unwrap();
    huge.set_len(MAX_MODEL_BYTES as u64).unwrap();
    check(
        "bytes with the data file `external.onnx.data` is more than the limit of 2147483648",
        ErrorKind::TooLarge,
    );
    models.find("external").expect("restored");
}

/// Two weights may have the same location. Both are read from there.
#[test]
fn weights_may_share_a_location() {
    let models = TestFolder::new("shared", &["external_each"]);
    let path = models.path("external_each.onnx");
    let mut model = ModelProto::parse_from_bytes(&fs::read(&path).unwrap()).unwrap();
    // The first layer has 48 x 46 numbers. The second has fewer, 46 x 44.
    let second = &mut model.graph.as_mut().unwrap().initializer[1];
    assert_eq!(
        (second.name.as_str(), second.dims.as_slice()),
        ("external_each.onnx.w2", &[46, 44][..])
    );
    second.external_data[0].value = "external_each.onnx.w1".to_owned();
    fs::write(&path, model.write_to_bytes().unwrap()).unwrap();
    let numbers = fs::read(models.path("external_each.onnx.w1")).unwrap();
    fs::write(models.path("external_each.onnx.w2"), b"not read").unwrap();
    let shared = models.find("external_each").unwrap();
    assert_eq!(shared.description().files.len(), 5);
    // The same weights as a copy.
    let copied = TestFolder::new("copied", &["external_each"]);
    fs::write(copied.path("external_each.onnx.w2"), &numbers[..46 * 44 * 4]).unwrap();
    let copied = copied.find("external_each").unwrap();
    let (_, golden) = super::small_models::model("external_each");
    let run = |model: &Model| model.run(Boundary::Input, model.end(), &golden.inputs).unwrap();
    assert!(run(&shared) == run(&copied));
}
