//! Values of models in parts: whatever else the gateway computes, they are the same bit for bit.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use super::*;
use crate::it::pipeline::{
    Lab, batch,
    models::{PREPARATION, RUNTIME, launch, squeezenet_folder},
};
use pushdown::step::model::ModelFolder;

/// Requests that ask for batches while a part is made.
const CLIENTS: usize = 4;
const PHOTOS: u32 = 12;

struct Models {
    lab: Lab,
    caller: Caller,
    request: BatchRequest,
}

impl Models {
    fn new(folder: &tempfile::TempDir, flags: &[&str]) -> Result<Self> {
        let lab = launch(folder, flags)?;
        let caller = Caller {
            keys: lab.keys.clone(),
            gateway: lab.address(),
        };
        let objects = (0..PHOTOS).map(|number| {
            let path = format!("{BUCKET}/{PREFIX}{number}.jpg");
            caller.put(&path, photo(240 + number, 230, "jpeg"))
        });
        let objects: Vec<_> = objects.collect::<Result<_>>()?;
        let local = ModelFolder::open(folder.path(), RUNTIME.clone())?;
        let text = format!("{PREPARATION} | model(squeezenet, until=cut:12)");
        let pipeline = Pipeline::parse_with(&text, &local)?;
        let request = caller.part(pipeline, PartFormat::Wds, &objects)?;
        Ok(Self { lab, caller, request })
    }

    /// MD5 of the part.
    fn part(&self) -> Result<String> {
        let part = written(&self.caller.ask(&trial(&self.request))?)?;
        assert_eq!(part.samples, PHOTOS);
        Ok(part.md5)
    }

    /// A batch of the same values. Returns how many come from the result cache.
    fn batch(&self) -> Result<usize> {
        let mut request = self.request.clone();
        request.part = None;
        request.cache = Some(pushdown::wire::CacheHints {
            epochs: 9,
            samples: PHOTOS.into(),
        });
        let rows = batch::rows(self.caller.ask(&request)?)?;
        ensure!(rows.iter().all(|row| row.value.is_ok()), "{rows:?}");
        Ok(rows.iter().filter(|row| row.cache.is_hit()).count())
    }

    /// Samples that ran, and batches in which they did.
    fn micro_batches(&self) -> Result<(f64, f64)> {
        let count = |name: &str| self.lab.gateway.metric(name);
        Ok((
            count("pushdown_micro_batch_samples_total")?,
            count("pushdown_micro_batches_total")?,
        ))
    }
}

#[test]
fn values_of_models_do_not_depend_on_other_requests() -> Result<()> {
    let folder = squeezenet_folder()?;
    let alone = Models::new(&folder, &["--threads=1"])?;
    let expected = alone.part()?;
    // Each sample is a batch of its own.
    let (samples, batches) = alone.micro_batches()?;
    assert_eq!((samples, batches), (f64::from(PHOTOS), f64::from(PHOTOS)));

    let busy = Models::new(&folder, &["--threads=1"])?;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let others: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    while !is_done.load(Relaxed) {
                        busy.batch()?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        let parts = (0..3).map(|_| busy.part()).collect::<Result<Vec<_>>>();
        is_done.store(true, Relaxed);
        for other in others {
            other.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        for part in parts? {
            assert_eq!(part, expected);
        }
        anyhow::Ok(())
    })?;
    let (samples, batches) = busy.micro_batches()?;
    ensure!(batches < samples, "the others shared no batch: {samples} samples");

    let cached = Models::new(&folder, &["--threads=1", "--cache-memory=64MiB"])?;
    cached.batch()?;
    assert_eq!(cached.batch()?, PHOTOS as usize);
    let (before, _) = cached.micro_batches()?;
    assert_eq!(cached.part()?, expected);
    let (after, _) = cached.micro_batches()?;
    // Not one value came from the cache.
    let computed = after - before;
    ensure!(
        (computed - f64::from(PHOTOS)).abs() < 0.5,
        "{computed} values are computed"
    );
    Ok(())
}
