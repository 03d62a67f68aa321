//! Models of a gateway that is lost: their weights are on the host, or come in the background.

use std::ffi::OsStr;

use pushdown_testkit::{distance, gated_relay, model_folder, onnxruntime};
use tempfile::TempDir;

use super::*;
use crate::it::models::{PREPARATION, floats};

/// Photos smaller than their pixels and larger than the values after the model, and a gateway of one thread that has the model.
fn lab_with_model() -> (Lab, TempDir) {
    let models = model_folder(&["squeezenet"]).unwrap();
    let photos = many_photos(400);
    let photos = photos.into_iter().filter(|(_, photo)| photo.len() < 12_000);
    let mut lab = Lab::new(World::with_objects(photos.collect()));
    let flags = [
        format!("--allow-store=http://{}", lab.store),
        "--threads=1".to_owned(),
        format!("--models={}", models.path().display()),
    ];
    let runtime = onnxruntime();
    let environment: [(&str, &OsStr); 1] = [("ORT_DYLIB_PATH", runtime.as_os_str())];
    lab.gateway = Some(Gateway::launch_with(&find_gateway().unwrap(), flags, &environment).unwrap());
    (lab, models)
}

/// This host has no weights, and only the gateway could send them.
#[test]
fn an_error_names_the_model_whose_weights_are_missing() {
    let (mut lab, _models) = lab_with_model();
    let (relay, _weights) = gated_relay(lab.gateway().listen()).unwrap();
    let cache = lab.world.folder().join("weights");
    run(async {
        let retry = RetryPolicy {
            attempts: 3,
            base: Duration::from_millis(1),
            cap: Duration::from_millis(1),
        };
        let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
        let reader = lab.reader_through(relay.address(), &pipeline).model_cache(&cache);
        let reader = reader.retry(retry).requests(1).prefetch_bytes(0);
        let mut reader = reader.build().await.unwrap();
        let batch = reader.next().await.unwrap().unwrap();
        assert!(batch.rows().iter().all(|row| row.stage > 0 && row.value.is_ok()));
        lab.lose(Loss::Killed);
        let error = reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let expected = "nothing can be read without the gateway, since this host has no weights of the model `squeezenet`";
        assert!(error.to_string().ends_with(expected), "{error}");
    });
}

/// The plan lets the gateway run the model throughout, so nothing else fetches the weights.
#[test]
fn weights_come_in_the_background_and_replace_the_gateway() {
    let (mut lab, _models) = lab_with_model();
    let gateway = format!("http://{}", lab.gateway().listen());
    let cache = lab.world.folder().join("weights");
    let weights = || {
        let files = fs::read_dir(&cache).into_iter().flatten().filter_map(Result::ok);
        files
            .filter(|file| file.path().extension() == Some(OsStr::new("onnx")))
            .count()
    };
    let pipeline = format!("{PREPARATION} | model(squeezenet)");
    let expected = read_rows(lab.reader(&pipeline).mode(Mode::Pushdown));
    let rows = run(async {
        let reader = lab.reader(&pipeline).model_cache(&cache);
        let mut reader = reader.requests(1).prefetch_bytes(0).build().await.unwrap();
        let mut rows = into_rows(vec![reader.next().await.unwrap().unwrap()]);
        assert!(rows.iter().all(|row| row.stage > 0));
        let arrive = async {
            while weights() == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), arrive)
            .await
            .expect("the weights should arrive although no sample needs them");
        lab.lose(Loss::Killed);
        let rest: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        rows.extend(into_rows(rest));
        assert_eq!(reader.stats().errors, 0);
        rows
    });
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(&expected) {
        assert_eq!(row.key, expected.key);
        let difference = distance(&floats(row), &floats(expected));
        assert!(difference <= 1e-5, "{}: {difference}", row.key);
    }
    // Another reader finds the weights and the list of models.
    let nowhere = "http://127.0.0.1:1";
    let reader = lab.reader_at(nowhere, &pipeline).model_cache(&cache);
    let error = run(async { reader.build().await.unwrap_err() });
    let text = "the pipeline names a model, which only the gateway describes";
    assert!(error.to_string().contains(text), "{error}");
    let reader = lab.reader_at(&gateway, &pipeline).model_cache(&cache);
    assert_eq!(read_rows(reader).len(), expected.len());
}

/// Of a reader that ends early. The next one goes on from there.
#[test]
fn parts_of_weights_stay_on_the_host() {
    let (lab, _models) = lab_with_model();
    // The first reader ends long before the last part.
    lab.link.set_rate(LINK / 5);
    let cache = lab.world.folder().join("weights");
    let sizes = |extension: &str| {
        let files = fs::read_dir(&cache).into_iter().flatten().filter_map(Result::ok);
        let files = files.filter(|file| file.path().extension() == Some(OsStr::new(extension)));
        files.map(|file| file.metadata().unwrap().len()).sum::<u64>()
    };
    let pipeline = format!("{PREPARATION} | model(squeezenet)");
    let read_until = |is_enough: &dyn Fn() -> bool| {
        run(async {
            let reader = lab.reader(&pipeline).model_cache(&cache);
            let reader = reader.requests(1).prefetch_bytes(0).build().await.unwrap();
            let began = Instant::now();
            while !is_enough() {
                assert!(
                    began.elapsed() < Duration::from_mins(1),
                    "the weights do not arrive"
                );
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            reader.close().await;
        });
    };
    read_until(&|| sizes("part") > 0);
    let before = sizes("part");
    assert!(before > 0 && sizes("onnx") == 0, "{before}");
    read_until(&|| sizes("part") > before || sizes("onnx") > 0);
    read_until(&|| sizes("onnx") > 0);
    assert_eq!(sizes("part"), 0);
}
