//! Configuration of the embedded store in a program without the feature `embedded-store`.

use serde::Serialize;

use crate::config::{Faults, Settings, values::Text};

/// The embedded store's folder. A program without the feature `embedded-store` never has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum StoreFolder {}

impl StoreFolder {
    /// Refuses the setting `store`.
    pub(super) fn validate(_directory: &Text, _settings: &Settings, faults: &mut Faults) -> Option<Self> {
        faults.add("store: this program was built without the feature `embedded-store`");
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Settings};

    #[test]
    fn the_embedded_store_is_refused_by_name() {
        let typed = Settings {
            store: Some("data".into()),
            access_key: Some("key".into()),
            secret_key: Some("secret".into()),
            ..Settings::default()
        };
        assert_eq!(
            Config::validate(&typed).unwrap_err().to_string(),
            "invalid configuration:\n  - store: this program was built without the feature `embedded-store`"
        );
    }
}
