//! The command line.

use std::{fmt, path::PathBuf, str::FromStr};

use clap::Parser;
use pushdown_client::{
    ErrorKind,
    internal::parse_with_model_folder,
    store::{Store, StoreBuilder},
};

use crate::read::ReadMethod;

/// The model is prepared by `scripts/models.sh`.
const PIPELINE: &str = "decode | resize(short=256) | center_crop(224) | to_float \
    | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
const AUGMENTED: &str = "decode | random_resized_crop(224) | flip_h | to_float \
    | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features) | cast(f16)";
const METHODS: [ReadMethod; 4] = [
    ReadMethod::Plain,
    ReadMethod::Pushed,
    ReadMethod::Auto,
    ReadMethod::Cached,
];

// Constants, because in doc comments `clap` would show the backticks that names of variables require.
const ENDPOINT: &str =
    "URL of the gateway [default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, then the profile's]";
const REGION: &str = "Region to sign for [default: AWS_REGION, the profile's, then us-east-1]";

/// Train a head on the features of a frozen model with several read methods, and compare them
///
/// A quarter of the samples of each class is held out, by the hash of their keys. A logistic head is trained on the features of
/// the others: once on one epoch, and once on several augmented epochs, whose features are new every time. The head must not
/// depend on the read method; the cost of reading does.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
pub(crate) struct Arguments {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    pub(crate) location: Location,
    /// Lines of `key,label`: the key with or without the prefix; 0, 1 or a probability
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// Lowest label that is positive
    #[arg(long, value_name = "LABEL", default_value_t = 0.5)]
    pub(crate) threshold: f64,
    /// Pipeline that computes the features of an object; see `pushdown steps`
    #[arg(long, short, default_value = PIPELINE)]
    pub(crate) pipeline: String,
    /// Pipeline for the augmented epochs
    #[arg(long, value_name = "PIPELINE", default_value = AUGMENTED)]
    pub(crate) augmented_pipeline: String,
    /// Augmented epochs, 0 for none
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) epochs: u32,
    /// Use only this many samples, with the same share of each class
    #[arg(long, value_name = "N")]
    pub(crate) samples: Option<usize>,
    /// Read methods to compare
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = METHODS)]
    pub(crate) methods: Vec<ReadMethod>,
    /// URL of the store itself, for plain reads [default: the gateway, which forwards them]
    #[arg(long, value_name = "URL")]
    pub(crate) plain_endpoint: Option<String>,
    /// URL of the gateway's admin port, to read its CPU time
    #[arg(long, value_name = "URL")]
    pub(crate) admin: Option<String>,
    /// Folder of the value cache [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) value_cache: Option<PathBuf>,
    /// Strength of the penalty on the head's weights
    #[arg(long, value_name = "L2", default_value_t = 100.0)]
    pub(crate) l2: f64,
    /// Seed of the random steps
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[arg(
        long,
        env = "PUSHDOWN_ENDPOINT",
        hide_env_values = true,
        value_name = "URL",
        help = ENDPOINT,
        help_heading = "Connection"
    )]
    endpoint_url: Option<String>,
    #[arg(long, value_name = "NAME", help = REGION, help_heading = "Connection")]
    region: Option<String>,
    /// Profile of the AWS configuration files; credentials are from the usual AWS chain
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    profile: Option<String>,
    /// Folder of the models that the pipeline names, instead of those of the gateway
    #[arg(
        long,
        env = "PUSHDOWN_MODELS",
        hide_env_values = true,
        value_name = "DIR",
        help_heading = "Connection"
    )]
    pub(crate) models: Option<PathBuf>,
}

/// Objects whose keys have a prefix, as `s3://bucket/prefix`, which is not percent-encoded.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) bucket: String,
    pub(crate) prefix: String,
}

impl Arguments {
    /// The settings of the gateway as a store. Missing settings are those of the AWS tools.
    pub(crate) fn store(&self) -> StoreBuilder {
        let mut store = Store::builder();
        if let Some(url) = &self.endpoint_url {
            store = store.endpoint(url);
        }
        if let Some(region) = &self.region {
            store = store.region(region);
        }
        if let Some(profile) = &self.profile {
            store = store.profile(profile);
        }
        store
    }

    /// Checks both pipelines. Contacts the gateway only if a pipeline names a model and no folder of models is set.
    pub(crate) async fn check_pipelines(&self, store: &Store) -> anyhow::Result<()> {
        for text in [&self.pipeline, &self.augmented_pipeline] {
            let parsed = match &self.models {
                Some(folder) => parse_with_model_folder(text, folder),
                None => store.pipeline(text).await,
            };
            parsed.map_err(|error| match error.kind() {
                // Its text starts with the position.
                ErrorKind::Pipeline => anyhow::anyhow!("invalid pipeline `{text}`: {error}"),
                _ => error.into(),
            })?;
        }
        Ok(())
    }
}

impl FromStr for Location {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_prefix("s3://").unwrap_or_default();
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        if bucket.is_empty() {
            return Err("expected s3://bucket/prefix");
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_has_a_bucket() {
        for text in ["s3://b/k", "s3://b/", "s3://b//a b%2F+?#/\u{e9}"] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), text);
        }
        assert_eq!("s3://b".parse::<Location>().unwrap().to_string(), "s3://b/");
        for text in ["", "b/k", "s3:///k", "http://b/k"] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }
}
