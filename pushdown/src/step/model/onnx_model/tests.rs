use std::{sync::mpsc, thread, time::Duration};

use sha2::{Digest as _, Sha256};

use super::*;

#[derive(Debug)]
struct Nowhere;

impl Weights for Nowhere {
    fn fetch(&self) -> Result<Files> {
        Err(Error::model("nowhere"))
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("none"))
    }
}

fn good() -> serde_json::Value {
    serde_json::json!({
        "name": "n", "digest": "0".repeat(64), "bytes": 1, "left_out": [], "batched": true, "working_bytes": 0,
        "inputs": [{"tensor": "x", "shape": [3, 8, 8]}], "outputs": [],
        "cut_points": [{"tensor": "y", "shape": [4], "bytes": 16, "parameters": 0, "macs": 0}],
    })
}

/// A list of models may come from anyone.
#[test]
fn descriptions_that_no_model_has() {
    let good = good();
    let fault = |field: &str, value: serde_json::Value| {
        let mut description = good.clone();
        description[field] = value;
        let description = serde_json::from_value(description).expect(field);
        Model::described(description, Nowhere)
            .expect_err(field)
            .to_string()
    };
    assert!(Model::described(serde_json::from_value(good.clone()).expect("good"), Nowhere).is_ok());
    assert!(fault("digest", "../../secret".into()).contains("64 hex digits"));
    assert!(fault("cut_points", serde_json::json!([])).contains("0 cut points"));
    let file = |name: &str, digest: &str, bytes: u64| serde_json::json!({"name": name, "digest": digest, "bytes": bytes});
    let digest = "0".repeat(64);
    let files = |files: &[serde_json::Value]| fault("files", files.into());
    for name in ["../w.data", "/w.data", "", ".w.data"] {
        assert!(files(&[file(name, &digest, 0)]).contains("expected bare names, each once"));
    }
    let one = file("w.data", &digest, 1);
    assert!(
        files(&[one.clone(), one]).contains("the file \"w.data\" of weights, expected bare names, each once")
    );
    assert!(
        files(&[file("w.data", "../../secret", 0)]).contains("an invalid digest, expected 64 hex digits")
    );
    assert!(
        files(&[file("w.data", &digest, 2)]).contains("2 bytes in files of weights, expected at most its 1")
    );
    let two = [file("v", &digest, u64::MAX), file("w", &digest, 1)];
    assert!(
        files(&two).contains("18446744073709551615 bytes in files"),
        "no overflow"
    );
    let many: Vec<_> = (0..=4096)
        .map(|index| file(&format!("w{index}"), &digest, 0))
        .collect();
    assert!(files(&many).contains("4097 files of weights, expected at most 4096"));
    let huge = serde_json::json!([{"tensor": "x", "shape": [1_u64 << 40, 1_u64 << 40]}]);
    assert!(fault("inputs", huge).contains("more than any value may have"));
}

fn of_model(bytes: &[u8]) -> Files {
    Files {
        model: bytes.into(),
        ..Files::default()
    }
}

/// Bytes that are there, and a library that is not.
#[derive(Debug)]
struct Here(&'static [u8]);

impl Weights for Here {
    fn fetch(&self) -> Result<Files> {
        Ok(of_model(self.0))
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("none"))
    }
}

/// Whatever fails says of which model; one whose file was replaced since it was described is found out.
#[test]
fn failures_name_the_model() {
    let described = |digest: String, weights: &'static [u8]| {
        let mut description = good();
        description["digest"] = digest.into();
        let description = serde_json::from_value(description).expect("good");
        Model::described(description, Here(weights)).expect("good")
    };
    let run = |model: &Model| {
        let value = Tensor::from_values(crate::Layout::Chw, vec![3, 8, 8], vec![0_f32; 192]);
        let error = model.run(Place::Input, 0, &[value]).expect_err("nothing runs");
        assert_eq!(model.load().expect_err("nothing loads"), error);
        error
    };
    let old = hex::encode(Sha256::digest(b"old"));
    let replaced = run(&described(old.clone(), b"new"));
    assert_eq!(replaced.kind(), crate::ErrorKind::InvalidModel);
    let new = hex::encode(Sha256::digest(b"new"));
    assert_eq!(
        replaced.to_string(),
        format!("the model `n`: the weights have the digest {new}, expected {old}: have they been replaced?")
    );
    let without = run(&described(old, b"old"));
    assert_eq!(without.kind(), crate::ErrorKind::ModelRuntime);
    assert_eq!(without.to_string(), "the model `n`: none");
    let description = serde_json::from_value(good()).expect("good");
    let nowhere = run(&Model::described(description, Nowhere).expect("good"));
    assert_eq!(nowhere.to_string(), "the model `n`: nowhere");
}

/// Readers and ETags know a model by its digest: what its card says of inputs is a part of it.
#[test]
fn a_changed_card_changes_the_digest() {
    let of = |json: &str| {
        let card = Card::parse(json.as_bytes()).expect(json);
        Digests::of(&of_model(b"weights")).whole(Some(&card)).expect(json)
    };
    let without_card = Digests::of(&of_model(b"weights")).whole(None).expect("no card");
    let found = of(r#"{"size": 224, "mean": [0.5], "std": [0.25]}"#);
    let same = of(r#"{ "std": [0.25], "mean": [0.5], "size": 224 }"#);
    assert_eq!(found, same, "however it is written");
    for other in [
        r#"{"size": 240, "mean": [0.5], "std": [0.25]}"#,
        r#"{"size": 224, "mean": [0.4], "std": [0.25]}"#,
        r#"{"size": 224, "mean": [0.5], "std": [0.25], "interpolation": "bicubic"}"#,
        r#"{"size": 224, "mean": [0.5], "std": [0.25], "freeze_point": "pool"}"#,
        "{}",
    ] {
        assert_ne!(of(other), found, "{other}");
    }
    assert_ne!(without_card, found);
    assert_ne!(without_card, of("{}"));
}

/// Copies of a part are made by what the part weighs, not by the whole model.
#[test]
fn a_part_weighs_what_lies_between_its_ends() {
    let cut = |parameters: u64| CutPoint {
        tensor: "t".to_owned(),
        shape: vec![1],
        bytes: 4,
        parameters,
        macs: 0,
    };
    let cuts = [cut(10), cut(30), cut(1_000)];
    assert_eq!(weights_between(&cuts, Place::Input, 2), 4_000);
    assert_eq!(weights_between(&cuts, Place::Input, 0), 40);
    assert_eq!(weights_between(&cuts, Place::Cut(0), 1), 80);
    // From a gateway numbers may come in any order, and of any size.
    assert_eq!(weights_between(&cuts, Place::Cut(2), 0), 0);
    assert_eq!(weights_between(&[cut(u64::MAX)], Place::Input, 0), u64::MAX);
    assert_eq!(weights_between(&cuts, Place::Input, 7), 0);
}

/// A model of which the weights come when they are told to.
#[derive(Debug)]
struct Slow {
    asked: mpsc::Sender<()>,
    come: Mutex<mpsc::Receiver<()>>,
}

impl Weights for Slow {
    fn fetch(&self) -> Result<Files> {
        let told = self.asked.send(()).is_ok() && self.come.lock().recv().is_ok();
        Err(Error::model(if told { "they are lost" } else { "nobody waits" }))
    }

    fn is_near(&self) -> bool {
        false
    }

    fn runtime(&self) -> Result<Runtime> {
        Err(Error::runtime("none"))
    }
}

/// It may be the thread that they come by.
#[test]
fn nobody_waits_for_weights_who_only_asks_whether_they_are_here() {
    let ((asked, was_asked), (send, come)) = (mpsc::channel(), mpsc::channel());
    let come = Mutex::new(come);
    let description = serde_json::from_value(good()).expect("good");
    let model = Model::described(description, Slow { asked, come }).expect("good");
    let model = Arc::new(model);
    let loading = thread::spawn({
        let model = Arc::clone(&model);
        move || model.load()
    });
    was_asked.recv().expect("weights are asked for");
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        model.release();
        answer.send((model.is_loaded(), model.is_near(), model.held_bytes()))
    });
    let answered = answered.recv_timeout(Duration::from_secs(30));
    assert_eq!(answered, Ok((false, false, 0)));
    send.send(()).expect("somebody waits");
    let error = loading.join().expect("no panic").expect_err("no weights");
    assert!(error.to_string().contains("they are lost"), "{error}");
}
