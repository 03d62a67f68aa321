use std::path::PathBuf;

use super::*;

fn models(folder: PathBuf) -> Models {
    Models {
        folder,
        onnxruntime: PathBuf::from("/nowhere/libonnxruntime.so"),
        serve_weights: true,
        execution_provider: Provider::Cpu,
    }
}

#[tokio::test]
async fn requests_for_a_model_wait_until_all_models_are_inspected() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken.onnx"), b"no model").unwrap();
    let models = ModelRegistry::new(Some(models(folder.path().to_owned())), 1 << 20).unwrap();
    assert!(!models.is_ready());
    let refused = models
        .wait_until_ready(Duration::from_millis(1))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SlowDown);
    let waiting = models.clone();
    let waiting = tokio::spawn(async move { waiting.wait_until_ready(Duration::from_mins(1)).await });
    models.clone().load(NonZeroUsize::MIN).await.unwrap();
    waiting.await.unwrap().unwrap();
    assert!(models.is_ready() && models.descriptions().is_empty());
    let error = models.resolve("broken").unwrap_err().to_string();
    assert!(error.contains("the model `broken` cannot be used"), "{error}");
}

#[tokio::test]
async fn a_missing_folder_is_an_error_at_start() {
    let error = ModelRegistry::new(Some(models("/nowhere".into())), 1 << 20).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
    let none = ModelRegistry::new(None, 0).unwrap();
    none.wait_until_ready(Duration::ZERO).await.unwrap();
    assert!(none.resolve("any").is_err());
}
