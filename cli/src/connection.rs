//! Options that several commands share: the connection, and the seed of random steps.

use std::path::PathBuf;

use clap::Args;
use pushdown::Pipeline;
use pushdown_client::{
    internal::parse_with_model_folder,
    store::{AddressingStyle, Store, StoreBuilder},
};

use crate::errors::PipelineError;

// Constants, because in doc comments `clap` would show the backticks that names of variables require.
const ENDPOINT: &str = "URL of the store, or of a gateway in its place [default: as the AWS tools, AWS_ENDPOINT_URL_S3 first, else AWS]";
const GATEWAY: &str = "URL of a gateway that fetches from the store what is signed for the store; several, separated by commas, are its replicas [default: PUSHDOWN_GATEWAY_URL, else the endpoint itself]";
const REGION: &str = "Region to sign for [default: AWS_REGION, the profile's, then us-east-1]";

/// The endpoint and the credentials.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    #[arg(long, env = "PUSHDOWN_ENDPOINT", hide_env_values = true, value_name = "URL", help = ENDPOINT)]
    pub(crate) endpoint_url: Option<String>,
    #[arg(long, value_name = "URL", help = GATEWAY)]
    pub(crate) gateway: Option<String>,
    /// Where requests name the bucket: auto, path or virtual (in the host) [default: that of the profile at AWS or beside a gateway, else auto]
    #[arg(long, value_name = "STYLE", value_parser = addressing_style)]
    pub(crate) addressing_style: Option<AddressingStyle>,
    #[arg(long, value_name = "NAME", help = REGION)]
    pub(crate) region: Option<String>,
    /// Profile of the AWS configuration files; credentials are from the usual AWS chain
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Folder of the models that the pipeline names, instead of those of the gateway
    #[arg(long, env = "PUSHDOWN_MODELS", hide_env_values = true, value_name = "DIR")]
    pub(crate) models: Option<PathBuf>,
}

/// Seed and epoch of random steps.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Randomness {
    /// Seed of random steps without their own seed; `read` also shuffles with it
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Epoch for the random steps, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) epoch: u32,
}

fn addressing_style(text: &str) -> Result<AddressingStyle, String> {
    match text {
        "auto" => Ok(AddressingStyle::Auto),
        "path" => Ok(AddressingStyle::Path),
        "virtual" => Ok(AddressingStyle::Virtual),
        _ => Err("expected auto, path or virtual".to_owned()),
    }
}

impl Connection {
    /// The settings of a store.
    pub(crate) fn store(&self) -> StoreBuilder {
        let mut store = Store::builder();
        if let Some(url) = &self.endpoint_url {
            store = store.endpoint(url);
        }
        if let Some(url) = &self.gateway {
            store = store.gateway(url);
        }
        if let Some(style) = self.addressing_style {
            store = store.addressing_style(style);
        }
        if let Some(region) = &self.region {
            store = store.region(region);
        }
        if let Some(profile) = &self.profile {
            store = store.profile(profile);
        }
        store
    }

    /// Parses a pipeline. Contacts the endpoint only if the pipeline names a model and no folder is set.
    pub(crate) async fn pipeline(&self, text: &str) -> anyhow::Result<Pipeline> {
        let parsed = match (Pipeline::parse(text), &self.models) {
            (Err(error), Some(folder)) if error.kind() == pushdown::ErrorKind::ModelRuntime => {
                parse_with_model_folder(text, folder)
            }
            (Err(error), None) if error.kind() == pushdown::ErrorKind::ModelRuntime => {
                match self.store().build().await {
                    Ok(store) => store.pipeline(text).await,
                    Err(error) => Err(error),
                }
            }
            (parsed, _) => parsed.map_err(Into::into),
        };
        parsed.map_err(|error| PipelineError::wrap(text, error))
    }
}
