//! What frozen layers cost the gateway beside the loop that people write around onnxruntime.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use pushdown::Pipeline;
use pushdown::step::model::{ModelFolder, Runtime};
use pushdown_testkit::Gateway;

use crate::cores;
use crate::cpu::Clock;
use crate::operators::run_all;
use crate::overhead::{batch_request, check_rows, send};
use crate::peer::{self, Peer};
use crate::photos::{SMALL, count, mean_kilobytes, read_all};
use crate::progress::say;
use crate::report::{Table, Target};
use crate::rounds::{Contender, take_turns};
use crate::store::Store;

/// The model with weights of its own.
const MODEL: &str = "efficientnet_lite0";
const PIPELINE: &str = "decode | resize(short=256) | center_crop(224) | to_float | \
    normalize(model=efficientnet_lite0) | model(efficientnet_lite0) | cast(f16)";
const PYTHON: &str = "Pillow and onnxruntime in Python";
const OURS: &str = "`Pipeline::run` in process";
const BATCH: &str = "pushdown batch";

/// What runs models, here and beside.
#[derive(Debug, Clone, Copy)]
pub struct Engine<'a> {
    /// Folder of models.
    pub models: &'a Path,
    /// ONNX Runtime's library.
    pub onnxruntime: &'a Path,
    /// Python with Pillow and onnxruntime.
    pub python: Option<&'a Path>,
}

/// What is measured, on however many cores.
struct Subject<'a> {
    gateway: &'a Path,
    photos: PathBuf,
    engine: Engine<'a>,
    /// ONNX Runtime can be loaded once in a process.
    pipeline: Pipeline,
    rounds: u32,
}

/// A table on one core, and one on all: Python's loops, one for each core, and batches through the gateway, over the same
/// photos.
pub fn run(gateway: &Path, photos: &Path, engine: &Engine<'_>, rounds: u32) -> Result<Vec<Table>> {
    let folder = only(engine.models)?;
    let models = ModelFolder::open(folder.path(), Runtime::load(engine.onnxruntime, 1))?;
    let subject = Subject {
        gateway,
        photos: photos.join(SMALL),
        engine: Engine {
            models: folder.path(),
            ..*engine
        },
        pipeline: Pipeline::parse_with(PIPELINE, &models)?,
        rounds,
    };
    if engine.python.is_none() {
        say("SKIPPED: onnxruntime in Python, because no --peers was given");
    }
    let all = cores::allowed()?;
    let mut tables = vec![cores::on_first(1, || subject.on_cores(1))?];
    if all > 1 {
        tables.push(subject.on_cores(all)?);
    }
    Ok(tables)
}

impl Subject<'_> {
    /// The table of these cores, which are all that this process and those that it starts may have.
    fn on_cores(&self, cores: usize) -> Result<Table> {
        let Self { engine, pipeline, .. } = self;
        let files = read_all(&self.photos)?;
        let samples = u32::try_from(files.len())?;
        let store = Store::launch()?;
        let flags = [
            format!("--upstream=http://{}", store.address()),
            format!("--models={}", engine.models.display()),
            format!("--onnxruntime={}", engine.onnxruntime.display()),
        ];
        let gateway = Gateway::launch(self.gateway, flags)?;
        let keys: Vec<_> = (0..files.len())
            .map(|index| format!("photos/{index:03}.jpg"))
            .collect();
        for (key, file) in keys.iter().zip(&files) {
            store.put(key, file.to_vec())?;
        }

        let mut contenders = Vec::new();
        if let Some(python) = engine.python {
            let model = engine.models.join(format!("{MODEL}.onnx"));
            let mut loops = (0..cores)
                .map(|_| Peer::start(python, "onnxruntime", &self.photos, &[&model]))
                .collect::<Result<Vec<_>>>()?;
            let round = move || Ok(peer::round_of_all(&mut loops)? * 1e3);
            contenders.push(Contender::new(PYTHON, round));
        }
        if cores == 1 {
            contenders.push(in_process(pipeline, &files));
        }
        let request = batch_request(&store, &gateway, &keys, pipeline)?;
        check_rows(&send(&gateway, &request)?, samples)?;
        let clock = Clock::of_process(gateway.id())?;
        let gateway = &gateway;
        contenders.push(Contender::new(BATCH, move || {
            let time = clock.measure(|| {
                let rows = send(gateway, &request)?;
                // 1000 classes of two bytes each; a row that failed would have none.
                ensure!(rows.len() >= 2000 * samples as usize, "the batch answer is short");
                Ok(())
            })?;
            Ok(time.as_secs_f64() * 1e3 / f64::from(samples))
        }));
        let has = match cores {
            1 => "one core".to_owned(),
            _ => format!("{cores} cores and as many loops in Python"),
        };
        say(&format!("frozen layers, {samples} photos a round, {has}"));
        let title = format!(
            "EfficientNet-Lite0, photos of 500 x 375, {} KB each on average; {has}",
            mean_kilobytes(&files)
        );
        let measured = take_turns(contenders, self.rounds)?;
        let mut table = Table::new(title, "CPU milliseconds per sample", measured);
        table.compare(BATCH, (BATCH, PYTHON), "times Python", Some(Target::AtMost(1.05)));
        table.compare(BATCH, (BATCH, OURS), "times `Pipeline::run`", None);
        Ok(table)
    }
}

fn in_process<'a>(pipeline: &'a Pipeline, files: &'a [Bytes]) -> Contender<'a> {
    let clock = Clock::of_this_thread();
    Contender::new(OURS, move || {
        let time = clock.measure(|| run_all(pipeline, files))?;
        Ok(time.as_secs_f64() * 1e3 / count(files))
    })
}

/// A folder of the one model: others would only be looked at.
fn only(models: &Path) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for extension in ["onnx", "json"] {
        let name = format!("{MODEL}.{extension}");
        let file = fs::canonicalize(models.join(&name))
            .with_context(|| format!("{name} is missing in {}: run scripts/models.sh", models.display()))?;
        symlink(file, folder.path().join(name))?;
    }
    Ok(folder)
}
