//! `pushdown explain`: the cost of each split, and the best plan.

mod assumptions;
mod replicas;
mod report;

use std::num::NonZeroUsize;

use clap::Args;
use pushdown_client::store::{HiddenObjects, Objects, Profile};

use crate::{
    Exit,
    connection::{Connection, Randomness},
    errors::PipelineError,
    location::Location,
    print::Format,
    progress::{self, Listing},
    terminal::write_line,
};
pub use assumptions::Assumptions;
pub use report::Explanation;

/// Measure a pipeline on a few samples, and show the best split
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// Pipeline for every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Samples to measure, spread over the listing
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(24).unwrap_or(NonZeroUsize::MIN))]
    samples: NonZeroUsize,
    /// Measure hidden objects as well: files of desktops, and empty objects that stand for folders
    #[arg(long)]
    include_hidden: bool,
    #[command(flatten)]
    assumptions: Assumptions,
    #[command(flatten)]
    randomness: Randomness,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

impl Explain {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let (profile, listed) = self.profile().await?;
        for (name, reason) in &profile.failed {
            // The error of a request names the object already, by its URL.
            let url = format!("s3://{}/{name}: ", self.prefix.bucket);
            let reason = reason.strip_prefix(&url).unwrap_or(reason);
            write_line(format_args!("{name}: {reason}"))?;
        }
        anyhow::ensure!(
            !profile.samples.is_empty(),
            "no sample under {} could be measured",
            self.prefix
        );
        for warning in profile.pipeline.warnings() {
            write_line(format_args!("warning: {warning}"))?;
        }
        if let Some(why) = &profile.engine_mismatch {
            write_line(format_args!(
                "warning: {why}: readers run these steps and all later ones on this host, even if a plan pushes them"
            ))?;
        }
        let explanation = Explanation::new(profile, listed, &self.assumptions);
        self.format
            .print(|| explanation.as_json(), |out| explanation.table(out))?;
        Ok(Exit::Success)
    }

    /// Measures some of the objects. Returns their profile and the number of all objects.
    async fn profile(&self) -> anyhow::Result<(Profile, u32)> {
        let wrap = |error| PipelineError::wrap(&self.pipeline, error);
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        let store = self.connection.store().build().await.map_err(wrap)?;
        let Location { bucket, key } = &self.prefix;
        let hidden = if self.include_hidden {
            HiddenObjects::Listed
        } else {
            HiddenObjects::LeftOut
        };
        let listing = Listing::new(&self.prefix);
        let all = store
            .list_objects_with(bucket, key, hidden, |objects| listing.update(objects))
            .await;
        drop(listing);
        let all = all.map_err(wrap)?;
        anyhow::ensure!(!all.is_empty(), "no objects found under {}", self.prefix);
        let listed = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let sampled = spread(&all, self.samples.get());
        let bar = progress::spinner(format_args!("measuring {} samples", sampled.len()));
        let seed = self.randomness.seed;
        let profile = store
            .profile(&sampled, &pipeline, seed, self.randomness.epoch)
            .await;
        bar.finish_and_clear();
        Ok((profile.map_err(wrap)?, listed))
    }
}

/// `count` of all objects, evenly spaced, or all if there are fewer.
pub fn spread(all: &Objects, count: usize) -> Objects {
    let count = count.min(all.len());
    all.select((0..count).map(|index| index.saturating_mul(all.len()) / count))
}
