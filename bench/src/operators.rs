//! Images per CPU second of the operators and their peers, one thread each.

use std::path::{Path, PathBuf};

use anyhow::Result;
use bytes::Bytes;
use pushdown::{Context, Pipeline, Sample};

use crate::cpu::CpuClock;
use crate::libraries::Libraries;
use crate::peer::PeerProcess;
use crate::photos::{LARGE, SMALL, count, mean_kilobytes, read_all};
use crate::progress::report;
use crate::report::{Table, Target};
use crate::rounds::{Contender, run_rounds};

/// The pipeline that is compared with the peers.
pub const SHORT_PIPELINE: &str = "decode | resize(short=256) | center_crop(224)";

const OURS: &str = "pushdown `decode | resize(short=256) | center_crop(224)`";
const BARE: &str = "libjpeg-turbo, decode alone";
const PILLOW: &str = "Pillow";
const TORCHVISION: &str = "torchvision (antialiased)";

/// The peers: name of the worker's variant, and name in the table.
const PEERS: [(&str, &str); 3] = [
    ("pillow", PILLOW),
    ("opencv-linear", "OpenCV `INTER_LINEAR` (no antialias)"),
    ("opencv-area", "OpenCV `INTER_AREA`"),
];

/// Python interpreters of the peers' environments.
#[derive(Debug, Clone, clap::Args)]
pub struct Peers {
    /// Python with Pillow, OpenCV and onnxruntime
    #[arg(long, value_name = "PYTHON")]
    peers: Option<PathBuf>,
    /// Python with torch and torchvision
    #[arg(long, value_name = "PYTHON")]
    torch: Option<PathBuf>,
}

impl Peers {
    /// Python with Pillow, `OpenCV` and onnxruntime.
    pub fn peers(&self) -> Option<&Path> {
        self.peers.as_deref()
    }
}

/// Returns two tables: the short pipeline compared with the peers, and scaled decoding compared with plain decoding.
pub fn run(photos: &Path, peers: &Peers, rounds: u32) -> Result<Vec<Table>> {
    Ok(vec![
        compare_with_peers(&photos.join(SMALL), peers, rounds)?,
        compare_scaled_decoding(&photos.join(LARGE), rounds)?,
    ])
}

fn compare_with_peers(folder: &Path, peers: &Peers, rounds: u32) -> Result<Table> {
    let files = read_all(folder)?;
    let mut contenders = vec![
        bare_decoding_contender(BARE, &files)?,
        pipeline_contender(OURS, SHORT_PIPELINE, &files)?,
    ];
    match &peers.peers {
        None => report("SKIPPED: Pillow and OpenCV, because no --peers was given"),
        Some(python) => {
            for (variant, name) in PEERS {
                contenders.push(peer_contender(python, variant, folder, name)?);
            }
        }
    }
    match &peers.torch {
        None => {
            report(
                "SKIPPED: torchvision, a download of 5 GB: `make bench PEERS=torch` installs and measures it",
            );
        }
        Some(python) => {
            contenders.push(peer_contender(python, "torchvision", folder, TORCHVISION)?);
        }
    }
    report(&format!(
        "operators and their peers, {} photos per round",
        files.len()
    ));
    let title = format!(
        "Operators, {} photos of 500 x 375, {} KB each on average",
        files.len(),
        mean_kilobytes(&files)
    );
    let mut table = Table::new(
        title,
        "images per CPU second, one thread",
        run_rounds(contenders, rounds)?,
    );
    table.compare(
        OURS,
        (OURS, BARE),
        "of bare decoding",
        Some(Target::AtLeast(0.78)),
    );
    table.compare(
        OURS,
        (OURS, TORCHVISION),
        "times torchvision",
        Some(Target::AtLeast(1.0)),
    );
    table.compare(OURS, (OURS, PILLOW), "times Pillow", Some(Target::AtLeast(2.0)));
    Ok(table)
}

fn compare_scaled_decoding(folder: &Path, rounds: u32) -> Result<Table> {
    const SCALED: &str = "`decode(min_short=512)`";
    const PLAIN: &str = "`decode`";
    let files = read_all(folder)?;
    let contenders = vec![
        pipeline_contender(PLAIN, "decode", &files)?,
        pipeline_contender(SCALED, "decode(min_short=512)", &files)?,
    ];
    report(&format!("scaled decoding, {} photos per round", files.len()));
    let title = format!("Scaled decoding, {} baseline JPEGs of 12 megapixels", files.len());
    let mut table = Table::new(
        title,
        "images per CPU second, one thread",
        run_rounds(contenders, rounds)?,
    );
    table.compare(
        SCALED,
        (SCALED, PLAIN),
        "times plain decoding",
        Some(Target::AtLeast(1.7)),
    );
    Ok(table)
}

fn peer_contender<'a>(python: &Path, variant: &str, folder: &Path, name: &str) -> Result<Contender<'a>> {
    let mut peer = PeerProcess::start(python, variant, folder, &[])?;
    Ok(Contender::new(name, move || Ok(peer.round()?.recip())))
}

/// Reuses one decompressor and one buffer for all photos: the fastest possible decoding.
pub(crate) fn bare_decoding_contender<'a>(name: &str, files: &'a [Bytes]) -> Result<Contender<'a>> {
    let mut libraries = Libraries::new()?;
    let clock = CpuClock::for_this_thread();
    Ok(Contender::new(name, move || {
        let time = clock.measure(|| files.iter().try_for_each(|file| libraries.decode(file).map(drop)))?;
        Ok(count(files) / time.as_secs_f64())
    }))
}

fn pipeline_contender<'a>(name: &str, pipeline: &str, files: &'a [Bytes]) -> Result<Contender<'a>> {
    let pipeline = Pipeline::parse(pipeline)?;
    let clock = CpuClock::for_this_thread();
    Ok(Contender::new(name, move || {
        let time = clock.measure(|| run_all(&pipeline, files))?;
        Ok(count(files) / time.as_secs_f64())
    }))
}

/// Runs a whole pipeline on every file, as the gateway would.
pub fn run_all(pipeline: &Pipeline, files: &[Bytes]) -> Result<()> {
    let context = Context::new(b"photo");
    for file in files {
        std::hint::black_box(pipeline.run(0..pipeline.len(), Sample::Bytes(file.clone()), &context)?);
    }
    Ok(())
}
