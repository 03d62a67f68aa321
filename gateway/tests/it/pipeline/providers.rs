//! What computes models: said at start, and not taken for what was asked for.

use std::path::Path;

use anyhow::{Result, ensure};
use pushdown_testkit::{Gateway, Keys, model_folder, onnxruntime};
use serde_json::Value;

use super::{
    Lab, binary,
    models::{PREPARED, folder, lab},
    photo,
};

/// What `/status.json` says, once a model has run.
fn in_force(lab: &Lab) -> Result<String> {
    lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
    let answer = lab.get(
        "cat.jpg",
        &format!("{PREPARED} | model(squeezenet, until=cut:2)"),
        &[],
    )?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let status: Value = serde_json::from_slice(&lab.gateway.page("/status.json")?.body)?;
    Ok(status["models"][0]["execution_provider"].to_string())
}

#[test]
fn models_run_on_the_cpu_unless_told_otherwise() -> Result<()> {
    let folder = folder()?;
    for flags in [&[][..], &["--execution-provider=cpu"]] {
        let lab = lab(&folder, flags)?;
        assert_eq!(in_force(&lab)?, "\"cpu\"");
        let log = lab.gateway.log()?;
        assert!(log.contains(r#"\"execution_provider\":\"cpu\""#), "{log}");
        assert!(!log.contains("execution provider"), "{log}");
    }
    Ok(())
}

/// As other programs are told of it, too; a flag comes before it.
#[test]
fn the_environment_may_name_the_library() -> Result<()> {
    let folder = model_folder(&["tiny/constants"])?;
    let models = format!("--models={}", folder.path().display());
    let (here, nowhere) = (onnxruntime(), Path::new("/nowhere/libonnxruntime.so"));
    let flag = format!("--onnxruntime={}", here.display());
    let (alone, with_flag) = ([models.as_str()], [models.as_str(), flag.as_str()]);
    for (flags, library, status) in [
        (&alone[..], here.as_path(), 200),
        (&alone[..], nowhere, 501),
        (&with_flag[..], nowhere, 200),
    ] {
        let keys = Keys::new("pushdowntestkey", "pushdowntestsecret");
        let environment = [("ORT_DYLIB_PATH", library.as_os_str())];
        let gateway = Gateway::embedded_with(binary(), &keys, flags, &environment)?;
        let lab = Lab::with(gateway, keys)?;
        lab.put("cat.png", photo(16, 12, "png"))?;
        let pipeline = "decode | resize(4, 4) | to_float | model(constants)";
        let answer = lab.get("cat.png", pipeline, &[])?;
        let text = answer.text();
        ensure!(
            answer.status == status,
            "{flags:?}, {}: {text}",
            library.display()
        );
        let refused = "cannot load ONNX Runtime from /nowhere/libonnxruntime.so";
        ensure!(text.contains(refused) == (status == 501), "{text}");
    }
    Ok(())
}

/// The library here knows the processor alone.
#[cfg(feature = "cuda")]
#[test]
fn models_run_on_the_cpu_where_cuda_cannot_be_used() -> Result<()> {
    let folder = folder()?;
    let lab = lab(&folder, &["--execution-provider=cuda"])?;
    assert_eq!(in_force(&lab)?, "\"cpu\"");
    let log = lab.gateway.log()?;
    assert!(
        log.contains("the execution provider cuda failed its trial: "),
        "{log}"
    );
    assert!(log.contains("; models run on the CPU"), "{log}");
    Ok(())
}
