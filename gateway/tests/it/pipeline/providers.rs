//! Execution providers: the log and the status name the one in use, not the one requested.

use std::path::Path;

use anyhow::{Result, ensure};
use pushdown_testkit::{Gateway, Keys, model_folder, onnxruntime};
use serde_json::Value;

use super::{
    Lab, binary,
    models::{PREPARATION, launch, squeezenet_folder},
    photo,
};

/// The execution provider that `/status.json` reports after a model has run.
fn execution_provider(lab: &Lab) -> Result<String> {
    lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
    let answer = lab.get(
        "cat.jpg",
        &format!("{PREPARATION} | model(squeezenet, until=cut:2)"),
        &[],
    )?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let status: Value = serde_json::from_slice(&lab.gateway.page("/status.json")?.body)?;
    Ok(status["models"][0]["execution_provider"].to_string())
}

#[test]
fn models_run_on_the_cpu_by_default() -> Result<()> {
    let folder = squeezenet_folder()?;
    for flags in [&[][..], &["--execution-provider=cpu"]] {
        let lab = launch(&folder, flags)?;
        assert_eq!(execution_provider(&lab)?, "\"cpu\"");
        let log = lab.gateway.log()?;
        assert!(log.contains(r#"\"execution_provider\":\"cpu\""#), "{log}");
        assert!(!log.contains("execution provider"), "{log}");
    }
    Ok(())
}

/// `ORT_DYLIB_PATH` is the variable that other programs read too. The flag takes precedence.
#[test]
fn the_environment_can_name_the_onnx_runtime_library() -> Result<()> {
    let folder = model_folder(&["tiny/constants"])?;
    let models = format!("--models={}", folder.path().display());
    let (library, missing) = (onnxruntime(), Path::new("/missing/libonnxruntime.so"));
    let flag = format!("--onnxruntime={}", library.display());
    let (models_only, with_flag) = ([models.as_str()], [models.as_str(), flag.as_str()]);
    for (flags, library, status) in [
        (&models_only[..], library.as_path(), 200),
        (&models_only[..], missing, 501),
        (&with_flag[..], missing, 200),
    ] {
        let keys = Keys::new("pushdowntestkey", "pushdowntestsecret");
        let environment = [("ORT_DYLIB_PATH", library.as_os_str())];
        let gateway = Gateway::embedded_with(binary(), &keys, flags, &environment)?;
        let lab = Lab::with_gateway(gateway, keys)?;
        lab.put("cat.png", photo(16, 12, "png"))?;
        let pipeline = "decode | resize(4, 4) | to_float | model(constants)";
        let answer = lab.get("cat.png", pipeline, &[])?;
        let text = answer.text();
        ensure!(
            answer.status == status,
            "{flags:?}, {}: {text}",
            library.display()
        );
        let refused = "cannot load ONNX Runtime from /missing/libonnxruntime.so";
        ensure!(text.contains(refused) == (status == 501), "{text}");
    }
    Ok(())
}

/// The ONNX Runtime library of the tests supports the CPU only.
#[cfg(feature = "cuda")]
#[test]
fn models_run_on_the_cpu_if_cuda_is_unavailable() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &["--execution-provider=cuda"])?;
    assert_eq!(execution_provider(&lab)?, "\"cpu\"");
    let log = lab.gateway.log()?;
    assert!(
        log.contains("the execution provider cuda failed its trial: "),
        "{log}"
    );
    assert!(log.contains("; models run on the CPU"), "{log}");
    Ok(())
}
