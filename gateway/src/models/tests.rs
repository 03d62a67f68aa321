use std::path::PathBuf;

use super::*;
use crate::access::Keys;

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
    assert!(models.is_ready() && models.descriptions(&ModelScope::All).is_empty());
    let error = models.resolve("broken", &ModelScope::All).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("the model `broken` cannot be used"), "{error}");
}

#[tokio::test]
async fn a_model_outside_of_the_scope_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["broken", "hidden"] {
        fs::write(folder.path().join(format!("{name}.onnx")), b"no model").unwrap();
    }
    let models = ModelRegistry::new(Some(models(folder.path().to_owned())), 1 << 20).unwrap();
    models.clone().load(NonZeroUsize::MIN).await.unwrap();
    let keys = Keys::from_text(
        r#"
        [[key]]
        access-key = "TESTVISION000001"
        secret = "one-secret-of-a-test"
        upstream = "gateway"
        models = ["broken", "nowhere"]
        "#,
    );
    let scope = ModelScope::Key(keys.unwrap().get("TESTVISION000001").unwrap());
    let error = |name: &str| models.resolve(name, &scope).unwrap_err().to_string();
    assert!(error("broken").contains("cannot be used"), "{}", error("broken"));
    let unknown = error("hidden");
    assert!(unknown.ends_with("served: broken"), "{unknown}");
    assert_eq!(unknown, error("hidder").replace("hidder", "hidden"));
    assert!(error("nowhere").contains("the unknown model `nowhere`"));
}

#[tokio::test]
async fn a_missing_folder_is_an_error_at_start() {
    let error = ModelRegistry::new(Some(models("/nowhere".into())), 1 << 20).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
    let none = ModelRegistry::new(None, 0).unwrap();
    none.wait_until_ready(Duration::ZERO).await.unwrap();
    assert!(none.resolve("any", &ModelScope::All).is_err());
}
