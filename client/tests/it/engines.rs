//! A gateway that computes otherwise than this host.

use pushdown_client::{Mode, Row, Split};
use pushdown_testkit::{model_folder, onnxruntime, other_onnxruntime};

use super::{
    cli::pushdown,
    models::PREPARED,
    world::{Objects, World, photos, rows},
};

/// Features of one version may not stand beside those of another: such a reader runs the layers itself. What runs here without
/// a model, and what nothing here follows, comes from the gateway all the same.
#[test]
fn beside_another_onnx_runtime_models_are_read_plainly() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let library = other_onnxruntime();
    assert!(library.exists(), "scripts/models.sh brings {}", library.display());
    let flags = [
        format!("--models={}", models.path().display()),
        format!("--onnxruntime={}", library.display()),
    ];
    let large = photos().into_iter().filter(|(_, bytes)| bytes.len() > 5_000);
    let objects: Objects = large.take(6).collect();
    let stored: usize = objects.values().map(Vec::len).sum();
    let world = World::with_flags(objects, &flags);
    let weights = world.folder().join("weights");
    let pipeline = format!("{PREPARED} | model(squeezenet) | cast(f16)");
    let read = |pipeline: &str, flags: &[&str]| {
        let arguments = [
            "read",
            "s3://photos/",
            "-p",
            pipeline,
            "--json",
            "--batch-size",
            "2",
        ];
        let output = pushdown(&[&arguments, flags].concat())
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .env("XDG_CACHE_HOME", world.folder())
            .env("ORT_DYLIB_PATH", onnxruntime())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
        assert_eq!(
            (&report["samples"], &report["errors"]),
            (&6.into(), &0.into()),
            "{said}"
        );
        (report["value_bytes"].as_u64().unwrap(), said)
    };
    for ways in [&["--auto"][..], &["--split", "4"]] {
        let (bytes, said) = read(&pipeline, ways);
        assert!(
            bytes >= stored as u64,
            "{ways:?}: {bytes} of {stored} bytes: {said}"
        );
        let here = format!(
            "this host with {}; onnxruntime=1.31.1; provider=cpu; ",
            pushdown::ENGINE
        );
        for part in [
            "onnxruntime=1.30.0; provider=cpu; ",
            &here,
            "the same version of ONNX Runtime",
        ] {
            assert!(said.contains(part), "{ways:?}: no `{part}` in: {said}");
        }
    }
    let explained = pushdown(&["explain", "s3://photos/", "-p", &pipeline, "--samples", "2"])
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .env("XDG_CACHE_HOME", world.folder())
        .env("ORT_DYLIB_PATH", onnxruntime())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&explained.stderr);
    assert!(explained.status.success(), "{said}");
    assert!(
        said.contains("the same version of ONNX Runtime: whatever the plan, a reader reads plainly"),
        "{said}"
    );
    // Nothing of the model runs here.
    let (bytes, said) = read(&pipeline, &["--split", "full"]);
    assert_eq!((bytes, said.contains("plainly")), (6 * 2_000, false), "{said}");
    // There is no model.
    let (bytes, said) = read("decode | resize(8, 8) | to_float", &["--split", "2"]);
    assert_eq!((bytes, said.contains("plainly")), (6 * 192, false), "{said}");

    let reader = || world.reader(&pipeline).cache(&weights);
    let values = |rows: Vec<Row>| rows.into_iter().map(|row| (row.key, row.stage, row.value));
    let plain = values(rows(reader().mode(Mode::Plain)));
    let pushed = values(rows(reader().split(Split::At(4))));
    assert!(plain.eq(pushed), "the very values of plain reading");
}
