//! Command line of the benchmarks that need no network.

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use pushdown_bench::operators::{self, Peers};
use pushdown_bench::photos::{LARGE, PROGRESSIVE, read_all};
use pushdown_bench::{crops, forward, memory, models, overhead, report, simulate};

/// Measure pushdown against its peers
#[derive(Debug, Parser)]
struct Cli {
    /// What to measure
    #[arg(value_enum, default_values = ["operators", "forward", "overhead", "models"])]
    scenarios: Vec<Scenario>,
    /// Number of measured rounds, after one to warm up
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Folder of the photos from `scripts/photos.sh`
    #[arg(long, default_value = ".cache/photos", value_name = "DIR")]
    photos: PathBuf,
    /// The gateway's binary
    #[arg(long, default_value = "target/release/pushdown-gateway", value_name = "FILE")]
    gateway: PathBuf,
    /// Folder of the models from `scripts/models.sh`
    #[arg(long, default_value = ".cache/models", value_name = "DIR")]
    models: PathBuf,
    /// ONNX Runtime's library, from `scripts/models.sh`
    #[arg(
        long,
        default_value = ".cache/onnxruntime/libonnxruntime.so",
        value_name = "FILE"
    )]
    onnxruntime: PathBuf,
    /// Folder for the results as JSON; `scripts/bench.sh` prints their tables
    #[arg(long, default_value = "bench/results", value_name = "DIR")]
    results: PathBuf,
    /// Size of the body that `memory` forwards, in GiB
    #[arg(long, default_value_t = 5)]
    gib: u64,
    #[command(flatten)]
    peers: Peers,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Scenario {
    /// Images per CPU second, compared with libjpeg-turbo, torchvision, Pillow and OpenCV
    Operators,
    /// Images per CPU second of cropped JPEGs, compared with libjpeg-turbo, and their bytes
    Crops,
    /// CPU time per forwarded request, compared with nginx
    Forward,
    /// CPU time of a pushdown request, compared with the library calls
    Overhead,
    /// CPU time of frozen layers at the gateway, compared with a Python loop around onnxruntime
    Models,
    /// Peak memory under a burst of requests, and while large bodies are forwarded
    Memory,
    /// Simulated epochs, from costs as JSON on standard input; see `bench/e2e`
    Simulate,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let mut tables = Vec::new();
    for scenario in &cli.scenarios {
        match scenario {
            Scenario::Operators => tables.extend(operators::run(&cli.photos, &cli.peers, cli.rounds)?),
            Scenario::Crops => tables.extend(crops::run(&cli.photos, cli.rounds)?),
            Scenario::Forward => tables.extend(forward::run(&cli.gateway, cli.rounds)?),
            Scenario::Overhead => tables.push(overhead::run(&cli.gateway, &cli.photos, cli.rounds)?),
            Scenario::Models => tables.extend(models::run(
                &cli.gateway,
                &cli.photos,
                &models::ModelPaths {
                    models: &cli.models,
                    onnxruntime: &cli.onnxruntime,
                    python: cli.peers.peers(),
                },
                cli.rounds,
            )?),
            Scenario::Simulate => {
                let epochs = simulate::run(&io::read_to_string(io::stdin())?)?;
                print(&serde_json::to_string(&epochs)?);
            }
            Scenario::Memory => {
                let large = [
                    read_all(&cli.photos.join(LARGE))?,
                    read_all(&cli.photos.join(PROGRESSIVE))?,
                ]
                .concat();
                for line in memory::run(&cli.gateway, large, cli.gib)? {
                    print(&format!("- {line}"));
                }
            }
        }
    }
    if tables.is_empty() {
        return Ok(());
    }
    let path = report::save(&cli.results, &tables)?;
    print(&path.display().to_string());
    Ok(())
}

#[expect(clippy::print_stdout, reason = "results are the output of this program")]
fn print(text: &str) {
    println!("{text}");
}
