//! Configuration of models in a program without the feature `models`.

use serde::Serialize;

use super::{Faults, Settings};

/// The models to serve. There are none without the feature `models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Models {}

impl Models {
    /// Refuses the settings of models. `onnxruntime` is ignored: `ORT_DYLIB_PATH` may be set for other programs.
    pub(super) fn validate(settings: &Settings, faults: &mut Faults) -> Option<Self> {
        for (name, setting) in [
            ("models", &settings.models),
            ("serve-weights", &settings.serve_weights),
            ("execution-provider", &settings.execution_provider),
        ] {
            if setting.is_some() {
                faults.add(format!(
                    "{name}: this program was built without the feature `models`"
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Settings};

    #[test]
    fn settings_of_models_are_refused_by_name() {
        let upstream = Settings {
            upstream: Some("http://127.0.0.1:8333".into()),
            onnxruntime: Some("/opt/libonnxruntime.so".into()),
            ..Settings::default()
        };
        assert_eq!(Config::validate(&upstream).unwrap().models, None);
        let typed = Settings {
            models: Some("models".into()),
            serve_weights: Some("true".into()),
            execution_provider: Some("cpu".into()),
            ..upstream
        };
        assert_eq!(
            Config::validate(&typed).unwrap_err().to_string(),
            "invalid configuration:\n  \
             - models: this program was built without the feature `models`\n  \
             - serve-weights: this program was built without the feature `models`\n  \
             - execution-provider: this program was built without the feature `models`"
        );
    }
}
