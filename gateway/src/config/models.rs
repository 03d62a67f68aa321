//! Configuration of models.

use std::path::PathBuf;

use pushdown::step::model::Provider;
use serde::Serialize;

use super::{Faults, Settings, path};

/// The models' folder, and what runs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Models {
    /// Folder with `NAME.onnx` and `NAME.json` files.
    pub folder: PathBuf,
    /// Library of ONNX Runtime. Default: `libonnxruntime.so` on the system's library path.
    pub onnxruntime: PathBuf,
    /// Whether clients may fetch the weights. Default true.
    pub serve_weights: bool,
    /// Execution provider of models. Falls back to the CPU if it is unusable. Default CPU.
    pub execution_provider: Provider,
}

impl Models {
    /// `None` if no models are served.
    pub(super) fn validate(settings: &Settings, faults: &mut Faults) -> Option<Self> {
        let serve_weights = faults.parsed("serve-weights", settings.serve_weights.as_ref(), true, |text| {
            text.parse()
                .map_err(|_| format!("expected true or false, found `{text}`"))
        });
        let provider_setting = settings.execution_provider.as_ref();
        let execution_provider =
            faults.parsed("execution-provider", provider_setting, Provider::Cpu, provider);
        let Some(folder) = &settings.models else {
            // ORT_DYLIB_PATH may be set for other programs. The other settings are a mistake without models.
            if settings.serve_weights.is_some() {
                faults.add("serve-weights requires models");
            }
            if provider_setting.is_some() {
                faults.add("execution-provider requires models");
            }
            return None;
        };
        Some(Self {
            folder: path(folder),
            onnxruntime: settings
                .onnxruntime
                .as_ref()
                .map_or_else(|| PathBuf::from("libonnxruntime.so"), path),
            serve_weights,
            execution_provider,
        })
    }
}

fn provider(text: &str) -> Result<Provider, String> {
    let provider: Provider = text.parse()?;
    if provider.is_built() {
        return Ok(provider);
    }
    Err(format!(
        "expected cpu, found `{text}`: this gateway was built without it; for {provider}, build with \
         `--features {provider}`"
    ))
}
