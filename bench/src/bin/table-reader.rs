//! Our own reader of tables in a process that stays, as those of other libraries do that `bench/e2e` holds it against:
//! reads once for each line on standard input, and answers with a line of JSON.

use std::io::{self, Write as _};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use futures::TryStreamExt as _;
use pushdown::wire::Split;
use pushdown::{Limits, Pipeline, Sample};
use pushdown_bench::cpu::Clock;
use pushdown_client::{GetValue, Store};
use serde_json::json;
use tokio::runtime::Runtime;

/// Read a table each time a line comes in
#[derive(Debug, Parser)]
struct Cli {
    /// Where its rows are made
    way: Way,
    /// The gateway
    endpoint: String,
    /// The object's bucket
    bucket: String,
    /// The object's key
    key: String,
    /// What to make of it
    pipeline: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Way {
    /// At the gateway
    Pushed,
    /// Here, of the columns as they are stored
    Ranges,
    /// Where fewer bytes travel, by the footer
    Smallest,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let pipeline: Pipeline = cli.pipeline.parse()?;
    let runtime = Runtime::new()?;
    let store = runtime.block_on(Store::builder().endpoint(&cli.endpoint).build())?;
    let clock = Clock::of_process(std::process::id())?;
    for line in io::stdin().lines() {
        line?;
        let (started, mut rows) = (Instant::now(), 0);
        let cpu = clock.measure(|| {
            rows = runtime.block_on(cli.read(&store, &pipeline))?;
            Ok(())
        })?;
        let figures =
            json!({"cpu": cpu.as_secs_f64(), "seconds": started.elapsed().as_secs_f64(), "rows": rows});
        writeln!(io::stdout(), "{figures}")?;
    }
    Ok(())
}

impl Cli {
    /// Reads all rows into memory, and counts them.
    async fn read(&self, store: &Store, pipeline: &Pipeline) -> Result<u64> {
        if matches!(self.way, Way::Pushed) {
            return self.pushed(store, pipeline).await;
        }
        let table = store.table(&self.bucket, &self.key, &Limits::default());
        let mut batches = Vec::new();
        if matches!(self.way, Way::Smallest) {
            let mut rows = table.rows(pipeline, None, 0).await?;
            while let Some(batch) = rows.next().await? {
                batches.push(batch);
            }
        } else {
            let scan = table.scan(pipeline, None, 0).await?;
            batches = scan.try_collect().await?;
        }
        Ok(batches.iter().map(|batch| batch.num_rows() as u64).sum())
    }

    async fn pushed(&self, store: &Store, pipeline: &Pipeline) -> Result<u64> {
        let what = GetValue {
            pipeline,
            split: Split::Full,
            seed: None,
            epoch: None,
            accept: Some("application/vnd.apache.arrow.stream"),
        };
        let limits = Limits::default();
        let value = store.get_value(&self.bucket, &self.key, &what, &limits).await;
        match value.context("the gateway's answer")?.decode(&limits)? {
            Sample::Table(table) => Ok(table.rows()),
            other => bail!("found {other:?}, expected a table"),
        }
    }
}
