//! Compares models with ONNX Runtime's Python API: whole and at every cut, in single runs and in batches.
//!
//! `scripts/models.sh` creates the models and their golden values. `make test` runs it for those of the tests that are not ignored.

mod golden;
mod published;

use std::{path::PathBuf, sync::LazyLock};

use pushdown::{
    Context, ErrorKind, Pipeline, Sample, Tensor,
    step::model::{Boundary, MAX_MODEL_BYTES, ModelFolder, Provider, Runtime},
};

pub(super) use golden::{Golden, TOLERANCE, distance, floats, golden};

pub(super) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::load(&root().join(".cache/onnxruntime/libonnxruntime.so"), 2).unwrap());

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Inspects each model when a test first uses it.
static FOLDER: LazyLock<ModelFolder> = LazyLock::new(|| {
    ModelFolder::open(&models(), Ok(RUNTIME.clone())).expect("scripts/models.sh creates .cache/models")
});

pub(super) fn models() -> PathBuf {
    root().join(".cache/models")
}

/// The library of the tests supports the CPU only.
#[test]
fn unavailable_providers_are_refused_with_the_reason() {
    let cpu = RUNTIME.with_provider(Provider::Cpu).unwrap();
    assert_eq!(cpu.identity().provider, "cpu");
    let error = RUNTIME
        .with_provider(Provider::Cuda)
        .expect_err("CUDA is unavailable");
    assert_eq!(error.kind(), ErrorKind::ModelRuntime);
    let reason = if Provider::Cuda.is_built() {
        "the execution provider cuda failed its trial: "
    } else {
        "build with `--features cuda`"
    };
    assert!(error.to_string().contains(reason), "{error}");
    assert_eq!(RUNTIME.provider(), Provider::Cpu);
}

/// The cuts that are compared, and with how large batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cuts {
    /// Every fourth cut, in turn with one sample and with all of them.
    Few,
    /// Each cut, with one sample and with all of them.
    All,
}

/// Compares the results of the whole model, of the layers before a cut, and of the layers after it, for batches of several sizes.
fn check_against_onnxruntime(name: &str, compared: Cuts) {
    let golden = golden(name);
    let model = FOLDER.find(name).expect(name);
    let cuts = &model.description().cut_points;
    let last = model.end();
    assert!(model.description().batched, "{name} takes batches");
    assert!(last >= 10, "{name} has {last} cuts");
    let check = |outputs: &[Tensor], batch: &[Tensor], cut: &str| {
        assert_eq!(outputs.len(), batch.len());
        for (found, expected) in outputs.iter().zip(golden.outputs.iter().cycle()) {
            let error = distance(&floats(found), expected);
            assert!(
                error <= TOLERANCE,
                "{name}, {cut}, batch of {}: {error}",
                batch.len()
            );
        }
    };
    let check_cut = |cut: usize, batch: &[Tensor]| {
        let point = &cuts[cut];
        let values = model.run(Boundary::Input, cut, batch).expect(name);
        assert_eq!(values.len(), batch.len());
        assert!(
            values.iter().all(|value| value.shape() == point.shape),
            "{}",
            point.tensor
        );
        golden.check_inner(&point.tensor, 0, &values);
        let outputs = model.run(Boundary::Cut(cut), last, &values).expect(name);
        check(&outputs, batch, &point.tensor);
    };
    for (number, batch) in [&golden.inputs[..1], &golden.inputs[..]].into_iter().enumerate() {
        let whole = model.run(Boundary::Input, last, batch).expect(name);
        check(&whole, batch, "whole");
        for cut in (0..last).filter(|cut| compared == Cuts::All || cut % 8 == 4 * number) {
            check_cut(cut, batch);
        }
    }
    // A batch size of gateways, at a few cuts, among them the usual ends of frozen layers.
    let eight: Vec<Tensor> = golden.inputs.iter().cycle().take(8).cloned().collect();
    for cut in [last / 4, last / 2, last * 3 / 4, last - 1] {
        check_cut(cut, &eight);
    }
    assert!(
        cuts.windows(2)
            .all(|pair| pair[0].macs <= pair[1].macs && pair[0].parameters <= pair[1].parameters)
    );
    let graph = model.description().bytes;
    assert!(model.memory_bytes() > graph, "{} bytes", model.memory_bytes());
    model.release();
    assert_eq!(model.memory_bytes(), 0);
}

macro_rules! models {
    ($($(#[$attribute:meta])? $name:ident),+ $(,)?) => {$(
        $(#[$attribute])?
        #[test]
        fn $name() {
            check_against_onnxruntime(stringify!($name), Cuts::All);
        }
    )+};
}

#[test]
fn efficientnet_lite0_at_a_few_cuts() {
    check_against_onnxruntime("efficientnet_lite0", Cuts::Few);
}

#[test]
fn shufflenet_at_a_few_cuts() {
    check_against_onnxruntime("shufflenet", Cuts::Few);
}

#[test]
fn squeezenet_at_a_few_cuts() {
    check_against_onnxruntime("squeezenet", Cuts::Few);
}

models!(
    #[ignore = "half a minute: make test-full"]
    efficientnet_lite0,
    #[ignore = "every cut: make test-full"]
    shufflenet,
    #[ignore = "every cut: make test-full"]
    squeezenet,
    #[ignore = "up to a minute: make test-full"]
    alexnet,
    #[ignore = "more than a minute: make test-full"]
    densenet121,
    #[ignore = "half a minute: make test-full"]
    inception_v1,
    #[ignore = "half a minute: make test-full"]
    inception_v2,
    #[ignore = "half a minute: make test-full"]
    resnet50,
    #[ignore = "minutes: make test-full"]
    vgg19
);

#[test]
#[ignore = "reads 1 GB: make test-full"]
fn every_model_is_accepted() {
    let folder = ModelFolder::open(&models(), Ok(RUNTIME.clone())).unwrap();
    folder.inspect_all(|name, model| assert!(model.is_ok(), "{name}: {model:?}"));
    assert_eq!(folder.iter().count(), 9);
}

/// Giga multiply-accumulate operations and millions of parameters of a whole model.
#[expect(clippy::cast_precision_loss, reason = "compared by a few digits")]
fn total_costs(name: &str) -> (f64, f64) {
    let model = FOLDER.find(name).unwrap();
    let end = &model.description().cut_points[model.end()];
    (end.macs as f64 / 1e9, end.parameters as f64 / 1e6)
}

/// 4.1 G multiply-accumulate operations (He et al., 2015).
#[test]
#[ignore = "102 MB: make test-full"]
fn the_cost_of_resnet50_equals_that_of_its_paper() {
    let (macs, parameters) = total_costs("resnet50");
    assert!(
        (3.8..4.2).contains(&macs) && (25.4..25.8).contains(&parameters),
        "{macs} G, {parameters} M"
    );
}

/// 19.6 G multiply-accumulate operations (Simonyan, 2014).
#[test]
#[ignore = "575 MB: make test-full"]
fn the_cost_of_vgg19_equals_that_of_its_paper() {
    let (macs, parameters) = total_costs("vgg19");
    assert!(
        (19.4..19.8).contains(&macs) && (143.0..144.0).contains(&parameters),
        "{macs} G, {parameters} M"
    );
}

fn noise_image() -> Sample {
    let pixels = (0..224 * 224 * 3_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8);
    Sample::Image(pushdown::Image::new(224, 224, pixels.collect()).unwrap())
}

/// A model with real weights, whose card provides mean and standard deviation.
#[test]
fn the_card_prepares_inputs() {
    let text = "decode | to_float | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
    let pipeline = Pipeline::parse_with(text, &*FOLDER).unwrap();
    assert_eq!(pipeline.kinds()[5].bytes(), Some(1280 * 2));
    let normalize = pipeline.steps()[2].to_string();
    assert_eq!(
        normalize,
        "normalize(mean=[0.49803922, 0.49803922, 0.49803922], std=[0.5019608, 0.5019608, 0.5019608])"
    );
    let description = FOLDER.find("efficientnet_lite0").unwrap().description().clone();
    let end = description.cut_points.last().unwrap();
    // 4.65 million weights and 385 million multiply-accumulate operations (Liu, 2020), with folded batch norms.
    assert!(
        (4_600_000..4_660_000).contains(&end.parameters),
        "{}",
        end.parameters
    );
    assert!((380_000_000..395_000_000).contains(&end.macs), "{}", end.macs);
}

/// A pipeline that is cut at any stage, also inside the model, has the same result within the tolerance of law 1.
#[test]
fn models_can_be_split_in_a_pipeline() {
    let text = |model: &str| format!("decode | to_float | normalize(imagenet) | {model}");
    let parse = |model: &str| Pipeline::parse_with(&text(model), &*FOLDER).unwrap();
    let run = |pipeline: &Pipeline, cuts: &[usize]| {
        let mut value = noise_image();
        for stretch in cuts.windows(2) {
            value = pipeline
                .run(stretch[0]..stretch[1], value, &Context::new(b""))
                .unwrap();
        }
        match value {
            Sample::Tensor(tensor) => floats(&tensor),
            other => panic!("expected a tensor, found {other:?}"),
        }
    };
    let whole = parse("model(squeezenet)");
    let expected = run(&whole, &[1, 4]);
    let refined = parse(
        "model(squeezenet, until=cut:3) | model(squeezenet, from=cut:3, until=cut:9) | model(squeezenet, from=cut:9)",
    );
    assert_eq!(refined.kinds()[6], whole.kinds()[4]);
    for cuts in [&[1, 6][..], &[1, 4, 6], &[1, 5, 6], &[1, 4, 5, 6], &[1, 3, 4, 6]] {
        assert!(distance(&run(&refined, cuts), &expected) <= TOLERANCE, "{cuts:?}");
    }
    let again = Pipeline::parse_with(&whole.to_string(), &*FOLDER).unwrap();
    assert_eq!(again, whole, "the canonical text reads back");
    assert!(
        whole
            .to_string()
            .contains(&FOLDER.find("squeezenet").unwrap().description().digest)
    );
}

#[test]
fn refined_pipelines_have_the_same_results() {
    check_refined("efficientnet_lite0");
}

#[test]
#[ignore = "102 MB: make test-full"]
fn refined_pipelines_of_resnet50_have_the_same_results() {
    check_refined("resnet50");
}

/// Each cut has fewer bytes than the one before, and refining does not change results.
fn check_refined(model: &str) {
    let text = format!("decode | to_float | model({model}) | cast(f16)");
    let whole = Pipeline::parse_with(&text, &*FOLDER).unwrap();
    let refined = whole.refined(12);
    let bytes: Vec<_> = refined.kinds()[2..]
        .iter()
        .map(|kind| kind.bytes().unwrap_or(602_112))
        .collect();
    // All but the output of the model: that may have any size.
    let cuts = &bytes[..bytes.len() - 2];
    assert!(cuts.windows(2).all(|pair| pair[0] > pair[1]), "{bytes:?}");
    assert!((5..=15).contains(&refined.len()), "{refined}");
    assert!(whole.refined(2).len() <= whole.len() + 2);
    let run = |pipeline: &Pipeline| {
        pipeline
            .run(1..pipeline.len(), noise_image(), &Context::new(b""))
            .unwrap()
    };
    // Adjacent ranges run as one.
    assert!(run(&whole) == run(&refined));
    let plain = Pipeline::parse("decode | to_float").unwrap();
    assert_eq!(plain.refined(12), plain);
}

#[test]
fn error_texts() {
    // Errors list the models of the folder.
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("models_of_error_texts");
    std::fs::create_dir_all(&path).unwrap();
    for file in [
        "squeezenet.onnx",
        "shufflenet.onnx",
        "efficientnet_lite0.onnx",
        "efficientnet_lite0.json",
    ] {
        let _exists =
            std::os::unix::fs::symlink(models().join(file).canonicalize().unwrap(), path.join(file));
    }
    let folder = ModelFolder::open(&path, Ok(RUNTIME.clone())).unwrap();
    folder.inspect_all(|name, model| assert!(model.is_ok(), "{name}: {model:?}"));
    let fault = |model: &str| {
        let text = format!("decode | center_crop(224) | to_float | {model}");
        Pipeline::parse_with(&text, &folder).expect_err(model).to_string()
    };
    let none = Pipeline::parse("decode | to_float | model(squeezenet)").expect_err("no models");
    assert_eq!(none.kind(), ErrorKind::ModelRuntime);
    insta::with_settings!({filters => [(r"[0-9a-f]{64}", "DIGEST")]}, {
        insta::assert_snapshot!(
            [
                none.to_string(),
                fault("model(squeeznet)"),
                fault("model(squeezenet@00)"),
                fault("model(squeezenet, until=conv1)"),
                fault("model(squeezenet, until=r0)"),
                fault("model(efficientnet_lite0, until=feat)"),
                fault("model(squeezenet, until=cut:99)"),
                fault("model(squeezenet, until=cut:1, from=cut:2)"),
                fault("model(squeezenet, from=cut:2)"),
                fault("layout(hwc) | model(squeezenet)"),
                fault("cast(f16) | model(squeezenet)"),
                fault("normalize(model=squeezenet)"),
                fault("normalize(imagenet, model=squeezenet)"),
            ]
            .join("\n")
        );
    });
}

/// Inspecting a large model takes seconds. Requests for other models do not wait for it.
#[test]
fn models_are_inspected_on_first_use() {
    let folder = ModelFolder::open(&models(), Ok(RUNTIME.clone())).unwrap();
    assert_eq!(folder.iter().count(), 0);
    let model = folder.find("squeezenet").unwrap();
    assert_eq!(model.description().name, "squeezenet");
    assert_eq!(folder.iter().count(), 1);
    let error = folder.find("squeezenets").expect_err("there is no such model");
    assert!(error.to_string().contains("served: squeezenet"), "{error}");
}

/// Each model is refused with its own reason. The folder still serves the others.
#[test]
fn bad_models() {
    let mut reasons = Vec::new();
    let folder = ModelFolder::open(&models().join("bad"), Ok(RUNTIME.clone())).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(models().join("bad"))
        .unwrap()
        .map(|file| {
            file.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    for name in names {
        let error = folder.find(&name).expect_err(&name);
        assert_eq!(error.kind(), ErrorKind::InvalidModel, "{name}: {error}");
        reasons.push(error.to_string());
    }
    // The messages of ONNX Runtime differ between versions.
    insta::with_settings!({filters => [(r"(ONNX Runtime[^:]*): .*", "$1: ..")]}, {
        insta::assert_snapshot!(reasons.join("\n"));
    });
}

/// The model is refused by name before any of it is read.
#[test]
fn a_model_over_the_limit_is_refused() {
    let folder_path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("models_over_the_limit");
    std::fs::create_dir_all(&folder_path).unwrap();
    // A sparse file takes no space.
    let file = std::fs::File::create(folder_path.join("huge.onnx")).unwrap();
    file.set_len(MAX_MODEL_BYTES as u64 + 1).unwrap();
    let folder = ModelFolder::open(&folder_path, Ok(RUNTIME.clone())).unwrap();
    let error = folder.find("huge").expect_err("too large");
    std::fs::remove_dir_all(&folder_path).unwrap();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        "the model `huge` cannot be used: a model of 2147483649 bytes is more than the limit of 2147483648"
    );
}
