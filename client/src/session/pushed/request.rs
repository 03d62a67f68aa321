//! The request of a batch: which samples fit into it, and its body.

use std::sync::Arc;

use pushdown::wire::{
    BatchRequest, BatchSample, CacheHints, Features, MAX_REQUEST_BYTES, Order, is_etag_hint,
};

use crate::{
    error::Result,
    session::{BatchJob, Session, routes::SampleRoute},
    sign::{BatchPost, BatchSigner, object_path},
};

/// The most samples in a request: the gateway's default limit.
const MAX_SAMPLES: usize = 4096;
/// The most bytes of a request apart from its samples: the pipeline's text and the signing parameters.
const REQUEST_HEAD_BYTES: usize = 2 * pushdown::limits::MAX_PIPELINE_BYTES + 16 * 1024;
/// The most bytes of a sample in JSON apart from its path and its ETag.
const SAMPLE_FRAME_BYTES: usize = 160;

/// The first of the missing slots, as many as fit into one request.
pub(super) fn request_slots(session: &Session, job: &BatchJob, missing: &[usize]) -> Vec<usize> {
    let mut room = MAX_REQUEST_BYTES.saturating_sub(REQUEST_HEAD_BYTES);
    let bucket = session.objects.bucket().len();
    let fits = |slot: &&usize| {
        let object = session.objects.object(job.samples[**slot].index);
        // Percent-encoding turns a byte into three, JSON a quotation mark into two.
        let path = 3 * (bucket + object.key.len());
        let etag = 2 * object.etag.map_or(0, str::len);
        let sample = path + etag + SAMPLE_FRAME_BYTES;
        let fits = sample <= room;
        room = room.saturating_sub(sample);
        fits
    };
    missing
        .iter()
        .take(MAX_SAMPLES)
        .take_while(fits)
        .copied()
        .collect()
}

/// What the gateway can do, as far as it is known.
pub(super) async fn features(session: &Session, job: &BatchJob) -> Features {
    let transport = session.store.transport();
    // What is read once more is worth caching from the first batch on.
    if session.epochs_left(job.epoch) > 1 {
        transport.ask_for_features().await
    } else {
        transport.features()
    }
}

/// The request for a gateway with these features, signed again for every attempt: as a whole, or each sample.
pub(super) async fn batch_post(
    session: &Arc<Session>,
    job: &BatchJob,
    slots: &[usize],
    signer: BatchSigner,
    features: Features,
) -> Result<BatchPost> {
    let samples = slots
        .iter()
        .map(|slot| (job.samples[*slot].index, job.routes.get(*slot)));
    let samples: Vec<(usize, SampleRoute)> = samples.collect();
    let (session, epoch) = (Arc::clone(session), job.epoch);
    let cpu = session.cpu.clone();
    // Thousands of signatures take milliseconds.
    let post = cpu.run(move || {
        let request = request(&session, &signer, &features, &samples, epoch);
        signer.post(&request, &features)
    });
    post.await?
}

fn request(
    session: &Session,
    signer: &BatchSigner,
    features: &Features,
    samples: &[(usize, SampleRoute)],
    epoch: u32,
) -> BatchRequest {
    let has_cache = features.has(Features::CACHE);
    let sample = |(index, SampleRoute { split, max_bytes }): &(usize, SampleRoute)| {
        let object = session.objects.object(*index);
        let path = object_path(session.objects.bucket(), object.key);
        let etag = object.etag.filter(|etag| has_cache && is_etag_hint(etag));
        BatchSample {
            split: (*split != session.split).then_some(*split),
            max_bytes: *max_bytes,
            etag: etag.map(str::to_owned),
            ..signer.sample(path)
        }
    };
    let samples = samples.iter().map(sample).collect();
    let mut request = signer.request(session.pipeline.clone(), samples);
    request.split = session.split;
    request.seed = session.seed;
    request.epoch = Some(epoch);
    request.order = Order::Any;
    request.compression = session.compression;
    request.cache = has_cache.then(|| CacheHints {
        epochs: session.epochs_left(epoch),
        samples: session.objects.len() as u64,
    });
    request
}
