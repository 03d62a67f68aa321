//! Runs a pipeline on the files of a folder, as fast as the processors take it: the ceiling of the `read` scenarios of
//! `bench/e2e`, where nothing is fetched. Prints one line of JSON.

use std::fs;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use pushdown::step::model::{ModelFolder, Runtime};
use pushdown::{Context, Pipeline, Sample};
use pushdown_bench::cpu::Clock;
use pushdown_testkit::peak_memory;
use serde_json::json;

/// Run a pipeline on every file of a folder, on all processors that this process may use
#[derive(Debug, Parser)]
struct Cli {
    /// Folder of the files, and of folders of them
    folder: PathBuf,
    /// Every file goes through it
    #[arg(long)]
    pipeline: String,
    /// Folder of the models that it names
    #[arg(long, value_name = "DIR", requires = "onnxruntime")]
    models: Option<PathBuf>,
    /// The library that runs them
    #[arg(long, env = "ORT_DYLIB_PATH", value_name = "FILE")]
    onnxruntime: Option<PathBuf>,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let pipeline = match (&cli.models, &cli.onnxruntime) {
        // Threads beside one another waste less than threads within a run, as at the gateway.
        (Some(models), Some(library)) => {
            let models = ModelFolder::open(models, Runtime::load(library, 1))?;
            Pipeline::parse_with(&cli.pipeline, &models)?
        }
        _ => Pipeline::parse(&cli.pipeline)?,
    };
    let mut files = Vec::new();
    collect(&cli.folder, &mut files)?;
    ensure!(!files.is_empty(), "found no file in {}", cli.folder.display());
    // What comes once, as weights do, is no part of an epoch.
    run(&pipeline, &files[..1])?;
    let clock = Clock::of_process(std::process::id())?;
    let (started, mut bytes) = (Instant::now(), 0);
    let cpu = clock.measure(|| {
        bytes = run(&pipeline, &files)?;
        Ok(())
    })?;
    let figures = json!({
        "samples": files.len(),
        "errors": 0,
        "epoch_seconds": [started.elapsed().as_secs_f64()],
        "cpu_seconds": cpu.as_secs_f64(),
        "peak_bytes": peak_memory(std::process::id())?,
        "value_bytes": bytes,
    });
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}

/// All files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Runs the pipeline on all of them, the next one on whichever thread is free; the bytes of all values.
fn run(pipeline: &Pipeline, files: &[PathBuf]) -> Result<u64> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut bytes = 0;
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let context = Context::new(path.as_os_str().as_encoded_bytes());
            let value = pipeline.run(0..pipeline.len(), Sample::Bytes(file.into()), &context);
            bytes += value.with_context(|| path.display().to_string())?.bytes();
        }
        Ok(bytes)
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<u64>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))
        };
        threads.into_iter().map(join).sum()
    })
}
