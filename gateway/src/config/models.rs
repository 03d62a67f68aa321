//! Which models there are, and what runs them.

use std::path::PathBuf;

use pushdown::step::model::Provider;
use serde::Serialize;

use super::{Faults, Settings, path};

/// Where models are, and what runs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Models {
    /// Folder of `NAME.onnx` and `NAME.json`.
    pub folder: PathBuf,
    /// ONNX Runtime's library. Default: `libonnxruntime.so` where the system finds it.
    pub onnxruntime: PathBuf,
    /// Whether clients may fetch the weights. Default true.
    pub serve_weights: bool,
    /// What computes models; where it cannot be used, the processor does. Default the processor.
    pub execution_provider: Provider,
}

impl Models {
    /// `None` where no models are served.
    pub(super) fn validate(typed: &Settings, faults: &mut Faults) -> Option<Self> {
        let serve_weights = faults.parsed("serve-weights", typed.serve_weights.as_ref(), true, |text| {
            text.parse()
                .map_err(|_| format!("`{text}` is neither true nor false"))
        });
        let typed_provider = typed.execution_provider.as_ref();
        let execution_provider = faults.parsed("execution-provider", typed_provider, Provider::Cpu, provider);
        let Some(folder) = &typed.models else {
            // The library may be set in the environment for other programs; the rest makes no sense alone.
            if typed.serve_weights.is_some() {
                faults.note("serve-weights belongs to models");
            }
            if typed_provider.is_some() {
                faults.note("execution-provider belongs to models");
            }
            return None;
        };
        Some(Self {
            folder: path(folder),
            onnxruntime: typed
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
        "found `{text}` in a gateway that was built without it, expected cpu; for {provider}, build with \
         `--features {provider}`"
    ))
}
