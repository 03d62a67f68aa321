//! This project's table reader as a long-running process, like the readers of other libraries that `bench/e2e` compares it with:
//! reads the table once per line on standard input, and prints one line of JSON each time.

use std::io::{self, Write as _};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use futures::TryStreamExt as _;
use pushdown::wire::Split;
use pushdown::{Limits, Pipeline, Sample};
use pushdown_bench::cpu::CpuClock;
use pushdown_client::store::{Store, ValueRequest};
use serde_json::json;
use tokio::runtime::Runtime;

/// Read a table once per line on standard input
#[derive(Debug, Parser)]
struct Cli {
    /// How to read the table
    mode: ReadMode,
    /// URL of the gateway
    endpoint: String,
    /// The object's bucket
    bucket: String,
    /// The object's key
    key: String,
    /// Pipeline that reads the table
    pipeline: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReadMode {
    /// The gateway runs the pipeline
    Pushed,
    /// This process reads ranges of the object and runs the pipeline
    Ranges,
    /// The one of these two that transfers fewer bytes, estimated from the footer
    Smallest,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let pipeline: Pipeline = cli.pipeline.parse()?;
    let runtime = Runtime::new()?;
    let store = runtime.block_on(Store::builder().endpoint(&cli.endpoint).build())?;
    let clock = CpuClock::for_process(std::process::id())?;
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
        if matches!(self.mode, ReadMode::Pushed) {
            return self.read_pushed(store, pipeline).await;
        }
        let table = store.table(&self.bucket, &self.key, &Limits::default());
        let mut batches = Vec::new();
        if matches!(self.mode, ReadMode::Smallest) {
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

    /// Reads the rows that the gateway computes, and counts them.
    async fn read_pushed(&self, store: &Store, pipeline: &Pipeline) -> Result<u64> {
        let request = ValueRequest {
            pipeline,
            split: Split::Full,
            seed: None,
            epoch: None,
            accept: Some("application/vnd.apache.arrow.stream"),
        };
        let limits = Limits::default();
        let value = store.get_value(&self.bucket, &self.key, &request, &limits).await;
        match value.context("the gateway returned no value")?.decode(&limits)? {
            Sample::Table(table) => Ok(table.rows()),
            other => bail!("expected a table, found {other:?}"),
        }
    }
}
