//! Settings from Python.

use pushdown_client::{
    reader::{PushdownReaderBuilder, ReaderSpec},
    store::{Credentials, StoreBuilder, StoreSpec},
};
use pyo3::PyResult;

use crate::{error::config, objects::Objects};

/// Access key, secret key and session token.
pub(crate) type Keys = (String, String, Option<String>);

/// Explicit credentials.
pub(crate) fn credentials((access_key, secret_key, token): Keys) -> Credentials {
    let credentials = Credentials::new(access_key, secret_key);
    match token {
        Some(token) => credentials.with_session_token(token),
        None => credentials,
    }
}

/// Parses the settings of a reader.
pub(crate) fn spec(json: &str) -> PyResult<ReaderSpec> {
    serde_json::from_str(json).map_err(|error| config(format!("invalid settings: {error}")))
}

/// The settings of a reader of these objects.
pub(crate) fn reader(json: &str, keys: Option<Keys>, objects: &Objects) -> PyResult<PushdownReaderBuilder> {
    let builder = PushdownReaderBuilder::from(spec(json)?).objects(objects.shared());
    Ok(match keys {
        Some(keys) => builder.credentials(credentials(keys)),
        None => builder,
    })
}

/// Parses the settings of a store.
pub(crate) fn store(json: &str, keys: Option<Keys>) -> PyResult<StoreBuilder> {
    let spec = serde_json::from_str(json).map_err(|error| config(format!("invalid settings: {error}")))?;
    Ok(store_of(spec, keys))
}

/// The settings of a store with explicit credentials, if there are any.
pub(crate) fn store_of(spec: StoreSpec, keys: Option<Keys>) -> StoreBuilder {
    let builder = StoreBuilder::from(spec);
    match keys {
        Some(keys) => builder.credentials(credentials(keys)),
        None => builder,
    }
}
