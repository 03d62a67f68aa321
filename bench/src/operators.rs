//! The operators against their peers, one thread each, per CPU second.

use std::path::{Path, PathBuf};

use anyhow::Result;
use bytes::Bytes;
use pushdown::{Context, Pipeline, Sample};

use crate::cpu::Clock;
use crate::libraries::Libraries;
use crate::peer::Peer;
use crate::photos::{LARGE, SMALL, count, mean_kilobytes, read_all};
use crate::progress::say;
use crate::report::{Table, Target};
use crate::rounds::{Contender, take_turns};

/// The job that the table of peers is about.
pub const SHORT_PIPELINE: &str = "decode | resize(short=256) | center_crop(224)";

const OURS: &str = "pushdown `decode | resize(short=256) | center_crop(224)`";
const BARE: &str = "libjpeg-turbo, decode alone";
const PILLOW: &str = "Pillow";
const TORCHVISION: &str = "torchvision (antialiased)";

/// The peers: what the worker calls them, what the table does.
const PEERS: [(&str, &str); 3] = [
    ("pillow", PILLOW),
    ("opencv-linear", "OpenCV `INTER_LINEAR` (no antialias)"),
    ("opencv-area", "OpenCV `INTER_AREA`"),
];

/// Interpreters of the environments that the peers live in.
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

/// Both tables: the short pipeline beside the peers, and scaled decoding beside plain decoding.
pub fn run(photos: &Path, peers: &Peers, rounds: u32) -> Result<Vec<Table>> {
    Ok(vec![
        beside_peers(&photos.join(SMALL), peers, rounds)?,
        scaled(&photos.join(LARGE), rounds)?,
    ])
}

fn beside_peers(folder: &Path, peers: &Peers, rounds: u32) -> Result<Table> {
    let files = read_all(folder)?;
    let mut contenders = vec![bare(&files)?, ours(OURS, SHORT_PIPELINE, &files)?];
    match &peers.peers {
        None => say("SKIPPED: Pillow and OpenCV, because no --peers was given"),
        Some(python) => {
            for (variant, name) in PEERS {
                contenders.push(peer(python, variant, folder, name)?);
            }
        }
    }
    match &peers.torch {
        None => {
            say(
                "SKIPPED: torchvision, a download of 5 GB: `make bench PEERS=torch` installs and measures it",
            );
        }
        Some(python) => {
            contenders.push(peer(python, "torchvision", folder, TORCHVISION)?);
        }
    }
    say(&format!(
        "operators beside their peers, {} photos a round",
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
        take_turns(contenders, rounds)?,
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

fn scaled(folder: &Path, rounds: u32) -> Result<Table> {
    const SCALED: &str = "`decode(min_short=512)`";
    const PLAIN: &str = "`decode`";
    let files = read_all(folder)?;
    let contenders = vec![
        ours(PLAIN, "decode", &files)?,
        ours(SCALED, "decode(min_short=512)", &files)?,
    ];
    say(&format!("scaled decoding, {} photos a round", files.len()));
    let title = format!("Scaled decoding, {} baseline JPEGs of 12 megapixels", files.len());
    let mut table = Table::new(
        title,
        "images per CPU second, one thread",
        take_turns(contenders, rounds)?,
    );
    table.compare(
        SCALED,
        (SCALED, PLAIN),
        "times plain decoding",
        Some(Target::AtLeast(1.7)),
    );
    Ok(table)
}

fn peer<'a>(python: &Path, variant: &str, folder: &Path, name: &str) -> Result<Contender<'a>> {
    let mut peer = Peer::start(python, variant, folder, &[])?;
    Ok(Contender::new(name, move || Ok(peer.round()?.recip())))
}

/// One decompressor and one buffer for all photos: nothing is left to save.
fn bare(files: &[Bytes]) -> Result<Contender<'_>> {
    let mut libraries = Libraries::new()?;
    let clock = Clock::of_this_thread();
    Ok(Contender::new(BARE, move || {
        let time = clock.measure(|| files.iter().try_for_each(|file| libraries.decode(file).map(drop)))?;
        Ok(count(files) / time.as_secs_f64())
    }))
}

fn ours<'a>(name: &str, pipeline: &str, files: &'a [Bytes]) -> Result<Contender<'a>> {
    let pipeline = Pipeline::parse(pipeline)?;
    let clock = Clock::of_this_thread();
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
