//! CPU cost of frozen layers at the gateway, compared with a Python loop around onnxruntime.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use pushdown::Pipeline;
use pushdown::step::model::{ModelFolder, Runtime};
use pushdown_testkit::Gateway;

use crate::cores;
use crate::cpu::CpuClock;
use crate::operators::run_all;
use crate::overhead::{batch_request, check_rows, send};
use crate::peer::{self, PeerProcess};
use crate::photos::{SMALL, count, mean_kilobytes, read_all};
use crate::progress::report;
use crate::report::{Table, Target};
use crate::rounds::{Contender, run_rounds};
use crate::store::Store;

/// The measured model.
const MODEL: &str = "efficientnet_lite0";
const PIPELINE: &str = "decode | resize(short=256) | center_crop(224) | to_float | \
    normalize(model=efficientnet_lite0) | model(efficientnet_lite0) | cast(f16)";
const PYTHON: &str = "Pillow and onnxruntime in Python";
const OURS: &str = "`Pipeline::run` in process";
const BATCH: &str = "pushdown batch";

/// Paths of the models and of what runs them.
#[derive(Debug, Clone, Copy)]
pub struct ModelPaths<'a> {
    /// Folder of models.
    pub models: &'a Path,
    /// ONNX Runtime's library.
    pub onnxruntime: &'a Path,
    /// Python with Pillow and onnxruntime.
    pub python: Option<&'a Path>,
}

/// The measurement, for any number of cores.
struct ModelBenchmark<'a> {
    gateway: &'a Path,
    photos: PathBuf,
    paths: ModelPaths<'a>,
    /// Parsed once, since ONNX Runtime can only be loaded once per process.
    pipeline: Pipeline,
    rounds: u32,
}

/// Returns a table for one core and one for all cores: Python loops, one per core, and batches through the gateway, over the
/// same photos.
pub fn run(gateway: &Path, photos: &Path, paths: &ModelPaths<'_>, rounds: u32) -> Result<Vec<Table>> {
    let folder = link_single_model(paths.models)?;
    let models = ModelFolder::open(folder.path(), Runtime::load(paths.onnxruntime, 1))?;
    let benchmark = ModelBenchmark {
        gateway,
        photos: photos.join(SMALL),
        paths: ModelPaths {
            models: folder.path(),
            ..*paths
        },
        pipeline: Pipeline::parse_with(PIPELINE, &models)?,
        rounds,
    };
    if paths.python.is_none() {
        report("SKIPPED: onnxruntime in Python, because no --peers was given");
    }
    let all = cores::available_cores()?;
    let mut tables = vec![cores::run_on_first(1, || benchmark.measure(1))?];
    if all > 1 {
        tables.push(benchmark.measure(all)?);
    }
    Ok(tables)
}

impl ModelBenchmark<'_> {
    /// The table for `cores` cores. The caller limits this process and its children to that many.
    fn measure(&self, cores: usize) -> Result<Table> {
        let Self { paths, pipeline, .. } = self;
        let files = read_all(&self.photos)?;
        let samples = u32::try_from(files.len())?;
        let store = Store::launch()?;
        let flags = [
            format!("--upstream=http://{}", store.address()),
            format!("--models={}", paths.models.display()),
            format!("--onnxruntime={}", paths.onnxruntime.display()),
        ];
        let gateway = Gateway::launch(self.gateway, flags)?;
        let keys: Vec<_> = (0..files.len())
            .map(|index| format!("photos/{index:03}.jpg"))
            .collect();
        for (key, file) in keys.iter().zip(&files) {
            store.put(key, file.to_vec())?;
        }

        let mut contenders = Vec::new();
        if let Some(python) = paths.python {
            let model = paths.models.join(format!("{MODEL}.onnx"));
            let mut loops = (0..cores)
                .map(|_| PeerProcess::start(python, "onnxruntime", &self.photos, &[&model]))
                .collect::<Result<Vec<_>>>()?;
            let round = move || Ok(peer::concurrent_round(&mut loops)? * 1e3);
            contenders.push(Contender::new(PYTHON, round));
        }
        if cores == 1 {
            contenders.push(in_process_contender(pipeline, &files));
        }
        let request = batch_request(&store, &gateway, &keys, pipeline)?;
        check_rows(&send(&gateway, &request)?, samples)?;
        let clock = CpuClock::for_process(gateway.id())?;
        let gateway = &gateway;
        contenders.push(Contender::new(BATCH, move || {
            let time = clock.measure(|| {
                let rows = send(gateway, &request)?;
                // 1000 classes of two bytes each; a failed row would have none.
                ensure!(
                    rows.len() >= 2000 * samples as usize,
                    "the batch response is too short"
                );
                Ok(())
            })?;
            Ok(time.as_secs_f64() * 1e3 / f64::from(samples))
        }));
        let cores_text = match cores {
            1 => "one core".to_owned(),
            _ => format!("{cores} cores and as many loops in Python"),
        };
        report(&format!(
            "frozen layers, {samples} photos per round, {cores_text}"
        ));
        let title = format!(
            "EfficientNet-Lite0, photos of 500 x 375, {} KB each on average; {cores_text}",
            mean_kilobytes(&files)
        );
        let measured = run_rounds(contenders, self.rounds)?;
        let mut table = Table::new(title, "CPU milliseconds per sample", measured);
        table.compare(BATCH, (BATCH, PYTHON), "times Python", Some(Target::AtMost(1.05)));
        table.compare(BATCH, (BATCH, OURS), "times `Pipeline::run`", None);
        Ok(table)
    }
}

fn in_process_contender<'a>(pipeline: &'a Pipeline, files: &'a [Bytes]) -> Contender<'a> {
    let clock = CpuClock::for_this_thread();
    Contender::new(OURS, move || {
        let time = clock.measure(|| run_all(pipeline, files))?;
        Ok(time.as_secs_f64() * 1e3 / count(files))
    })
}

/// A folder with a link to the measured model only, so that the gateway does not open others.
fn link_single_model(models: &Path) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for extension in ["onnx", "json"] {
        let name = format!("{MODEL}.{extension}");
        let file = fs::canonicalize(models.join(&name))
            .with_context(|| format!("{name} is missing in {}: run scripts/models.sh", models.display()))?;
        symlink(file, folder.path().join(name))?;
    }
    Ok(folder)
}
