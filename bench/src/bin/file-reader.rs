//! Runs a pipeline on the files of a folder as fast as the CPUs allow: the upper bound of the `read` scenarios of `bench/e2e`,
//! without any transfer. Prints one line of JSON.

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
use pushdown_bench::cpu::CpuClock;
use pushdown_testkit::peak_memory;
use serde_json::json;

/// Run a pipeline on every file of a folder, on all CPUs available to this process
#[derive(Debug, Parser)]
struct Cli {
    /// Folder of the files; searched recursively
    folder: PathBuf,
    /// Pipeline to run on every file
    #[arg(long)]
    pipeline: String,
    /// Folder of the models that the pipeline names
    #[arg(long, value_name = "DIR", requires = "onnxruntime")]
    models: Option<PathBuf>,
    /// ONNX Runtime's library
    #[arg(long, env = "ORT_DYLIB_PATH", value_name = "FILE")]
    onnxruntime: Option<PathBuf>,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let pipeline = match (&cli.models, &cli.onnxruntime) {
        // Threads that run separate samples waste less than threads within one run, as at the gateway.
        (Some(models), Some(library)) => {
            let models = ModelFolder::open(models, Runtime::load(library, 1))?;
            Pipeline::parse_with(&cli.pipeline, &models)?
        }
        _ => Pipeline::parse(&cli.pipeline)?,
    };
    let mut files = Vec::new();
    collect_files(&cli.folder, &mut files)?;
    ensure!(!files.is_empty(), "found no file in {}", cli.folder.display());
    // Warm up: loading the weights is not part of an epoch.
    run_all(&pipeline, &files[..1])?;
    let clock = CpuClock::for_process(std::process::id())?;
    let (started, mut value_bytes) = (Instant::now(), 0);
    let cpu = clock.measure(|| {
        value_bytes = run_all(&pipeline, &files)?;
        Ok(())
    })?;
    let figures = json!({
        "samples": files.len(),
        "errors": 0,
        "epoch_seconds": [started.elapsed().as_secs_f64()],
        "cpu_seconds": cpu.as_secs_f64(),
        "peak_bytes": peak_memory(std::process::id())?,
        "value_bytes": value_bytes,
    });
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}

/// Adds all files below a folder to `files`.
fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Runs the pipeline on all files, one thread per CPU; returns the total bytes of the values.
fn run_all(pipeline: &Pipeline, files: &[PathBuf]) -> Result<u64> {
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
    let thread_count = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..thread_count).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<u64>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))
        };
        threads.into_iter().map(join).sum()
    })
}
