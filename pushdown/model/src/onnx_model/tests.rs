use std::{sync::mpsc, thread, time::Duration};

use sha2::{Digest as _, Sha256};

use super::*;

/// A source without weights.
#[derive(Debug)]
struct NoWeights;

impl WeightSource for NoWeights {
    fn fetch(&self) -> Result<ModelFiles> {
        Err(Error::model("no weights"))
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("no runtime"))
    }
}

fn valid_description() -> serde_json::Value {
    serde_json::json!({
        "name": "n", "digest": "0".repeat(64), "bytes": 1, "left_out": [], "batched": true, "working_bytes": 0,
        "inputs": [{"tensor": "x", "shape": [3, 8, 8]}], "outputs": [],
        "cut_points": [{"tensor": "y", "shape": [4], "bytes": 16, "parameters": 0, "macs": 0}],
    })
}

/// Any server may send a list of models.
#[test]
fn invalid_descriptions_are_refused() {
    let valid = valid_description();
    let fault = |field: &str, value: serde_json::Value| {
        let mut description = valid.clone();
        description[field] = value;
        let description = serde_json::from_value(description).expect(field);
        Model::from_description(description, NoWeights)
            .expect_err(field)
            .to_string()
    };
    let description = serde_json::from_value(valid.clone()).expect("valid");
    assert!(Model::from_description(description, NoWeights).is_ok());
    let digest = fault("digest", "../../secret".into());
    assert_eq!(
        digest,
        "the model `n` has an invalid digest: expected 64 hex digits, found \"../../secret\""
    );
    assert!(fault("cut_points", serde_json::json!([])).contains("0 cut points"));
    let file = |name: &str, digest: &str, bytes: u64| serde_json::json!({"name": name, "digest": digest, "bytes": bytes});
    let digest = "0".repeat(64);
    let files = |files: &[serde_json::Value]| fault("files", files.into());
    for name in ["../w.data", "/w.data", "", ".w.data"] {
        assert!(files(&[file(name, &digest, 0)]).contains("expected bare names, each once"));
    }
    let one = file("w.data", &digest, 1);
    assert!(files(&[one.clone(), one]).contains("the data file \"w.data\", expected bare names, each once"));
    assert!(
        files(&[file("w.data", "../../secret", 0)]).contains("an invalid digest, expected 64 hex digits")
    );
    assert!(
        files(&[file("w.data", &digest, 2)]).contains("2 bytes in data files, expected at most 1, the model")
    );
    let two = [file("v", &digest, u64::MAX), file("w", &digest, 1)];
    assert!(
        files(&two).contains("18446744073709551615 bytes in data files"),
        "no overflow"
    );
    let many: Vec<_> = (0..=4096)
        .map(|index| file(&format!("w{index}"), &digest, 0))
        .collect();
    assert!(files(&many).contains("4097 data files, expected at most 4096"));
    let huge = serde_json::json!([{"tensor": "x", "shape": [1_u64 << 40, 1_u64 << 40]}]);
    assert!(fault("inputs", huge).contains("more than any value may have"));
}

fn files(model: &[u8]) -> ModelFiles {
    ModelFiles {
        model: model.into(),
        ..ModelFiles::default()
    }
}

/// Available weights, and no ONNX Runtime.
#[derive(Debug)]
struct NoRuntime(&'static [u8]);

impl WeightSource for NoRuntime {
    fn fetch(&self) -> Result<ModelFiles> {
        Ok(files(self.0))
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("no runtime"))
    }
}

/// Every error names the model. A file that was replaced after it was described is detected.
#[test]
fn failures_name_the_model() {
    let described = |digest: String, weights: &'static [u8]| {
        let mut description = valid_description();
        description["digest"] = digest.into();
        let description = serde_json::from_value(description).expect("valid");
        Model::from_description(description, NoRuntime(weights)).expect("valid")
    };
    let run = |model: &Model| {
        let value = Tensor::from_values(pushdown_core::Layout::Chw, vec![3, 8, 8], vec![0_f32; 192]);
        let error = model.run(Boundary::Input, 0, &[value]).expect_err("nothing runs");
        assert_eq!(model.prepare().expect_err("nothing loads"), error);
        error
    };
    let old = hex::encode(Sha256::digest(b"old"));
    let replaced = run(&described(old.clone(), b"new"));
    assert_eq!(replaced.kind(), pushdown_core::ErrorKind::InvalidModel);
    let new = hex::encode(Sha256::digest(b"new"));
    assert_eq!(
        replaced.to_string(),
        format!("the model `n`: the weights have the digest {new}, expected {old}: have they been replaced?")
    );
    let no_runtime = run(&described(old, b"old"));
    assert_eq!(no_runtime.kind(), pushdown_core::ErrorKind::ModelRuntime);
    assert_eq!(no_runtime.to_string(), "the model `n`: no runtime");
    let description = serde_json::from_value(valid_description()).expect("valid");
    let no_weights = run(&Model::from_description(description, NoWeights).expect("valid"));
    assert_eq!(no_weights.to_string(), "the model `n`: no weights");
}

/// The digest identifies a model to readers and in `ETag`s, so it covers what the card says about inputs.
#[test]
fn a_changed_card_changes_the_digest() {
    let digest = |json: &str| {
        let card = ModelCard::parse(json.as_bytes()).expect(json);
        FileDigests::new(&files(b"weights"))
            .combined(Some(&card))
            .expect(json)
    };
    let without_card = FileDigests::new(&files(b"weights"))
        .combined(None)
        .expect("no card");
    let found = digest(r#"{"size": 224, "mean": [0.5], "std": [0.25]}"#);
    let same = digest(r#"{ "std": [0.25], "mean": [0.5], "size": 224 }"#);
    assert_eq!(found, same, "order and spaces do not count");
    for other in [
        r#"{"size": 240, "mean": [0.5], "std": [0.25]}"#,
        r#"{"size": 224, "mean": [0.4], "std": [0.25]}"#,
        r#"{"size": 224, "mean": [0.5], "std": [0.25], "interpolation": "bicubic"}"#,
        r#"{"size": 224, "mean": [0.5], "std": [0.25], "freeze_point": "pool"}"#,
        "{}",
    ] {
        assert_ne!(digest(other), found, "{other}");
    }
    assert_ne!(without_card, found);
    assert_ne!(without_card, digest("{}"));
}

/// A source that answers only when the test lets it.
#[derive(Debug)]
struct SlowSource {
    requests: mpsc::Sender<()>,
    replies: Mutex<mpsc::Receiver<()>>,
}

impl WeightSource for SlowSource {
    fn fetch(&self) -> Result<ModelFiles> {
        let replied = self.requests.send(()).is_ok() && self.replies.lock().recv().is_ok();
        Err(Error::model(if replied { "weights lost" } else { "test ended" }))
    }

    fn is_local(&self) -> bool {
        false
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("no runtime"))
    }
}

/// The thread that asks may be the one that fetches the weights.
#[test]
fn asking_whether_weights_are_loaded_never_waits_for_them() {
    let ((requests, requested), (reply, replies)) = (mpsc::channel(), mpsc::channel());
    let replies = Mutex::new(replies);
    let description = serde_json::from_value(valid_description()).expect("valid");
    let source = SlowSource { requests, replies };
    let model = Arc::new(Model::from_description(description, source).expect("valid"));
    let loading = thread::spawn({
        let model = Arc::clone(&model);
        move || model.prepare()
    });
    requested.recv().expect("weights are fetched");
    let (answer, answers) = mpsc::channel();
    thread::spawn(move || {
        model.release();
        answer.send((model.is_loaded(), model.is_local(), model.memory_bytes()))
    });
    let answer = answers.recv_timeout(Duration::from_secs(30));
    assert_eq!(answer, Ok((false, false, 0)));
    reply.send(()).expect("the fetch waits");
    let error = loading.join().expect("no panic").expect_err("no weights");
    assert!(error.to_string().contains("weights lost"), "{error}");
}
