//! The request of a batch: which samples fit into it, and its body.

use std::sync::Arc;

use pushdown::wire::{
    BatchRequest, BatchSample, CacheHints, Demand, Features, MAX_REQUEST_BYTES, ObjectForm, Order,
    is_etag_hint,
};

use crate::{
    error::Result,
    objects::MemberRef,
    sign::{BatchPost, BatchSigner, with_members},
    units::objects::{BatchJob, Session, WarmUp, routes::SampleRoute},
};

/// The most samples in a request: the gateway's default limit.
const MAX_SAMPLES: usize = 4096;
/// The most bytes of a request apart from its samples: the pipeline's text and the signing parameters.
const REQUEST_HEAD_BYTES: usize = 2 * pushdown::limits::MAX_PIPELINE_BYTES + 16 * 1024;
/// The most bytes of a sample in JSON apart from its path, its ETag and its members.
const SAMPLE_FRAME_BYTES: usize = 192;
/// The most bytes of a member in JSON apart from its name.
const MEMBER_FRAME_BYTES: usize = 120;

/// The first of the missing slots, as many as fit into one request. Members are in the order of shards and offsets, in which the gateway
/// reads those that are near each other by one request.
pub(super) fn request_slots(session: &Session, job: &BatchJob, missing: &[usize]) -> Vec<usize> {
    let objects = &session.objects;
    let mut slots = missing.to_vec();
    if objects.has_members() {
        slots.sort_by_key(|slot| {
            let index = job.samples[*slot].index;
            let offset = objects.member(index).map(|member| member.range.offset());
            (objects.shard_number(index), offset)
        });
    }
    let mut room = MAX_REQUEST_BYTES.saturating_sub(REQUEST_HEAD_BYTES);
    let fits = |slot: &&usize| {
        let sample = max_sample_bytes(session, job.samples[**slot].index);
        let fits = sample <= room;
        room = room.saturating_sub(sample);
        fits
    };
    slots.iter().take(MAX_SAMPLES).take_while(fits).copied().collect()
}

/// The most bytes of a sample in JSON.
fn max_sample_bytes(session: &Session, index: usize) -> usize {
    let objects = &session.objects;
    let object = objects.object(index);
    let columns = (0..objects.columns().len()).map(|column| objects.column_member(index, column));
    let members = columns.chain([object.member]).map(max_member_bytes);
    // Percent-encoding turns a byte into three, JSON a quotation mark into two.
    let path = 3 * (objects.bucket().len() + object.key.len());
    let etag = 2 * object.etag.map_or(0, str::len);
    path + etag + SAMPLE_FRAME_BYTES + members.sum::<usize>()
}

/// The most bytes of a member in JSON, or of `null` for a missing one.
fn max_member_bytes(member: Option<MemberRef<'_>>) -> usize {
    // JSON turns a control character into six characters.
    let escaped = |byte: u8| match byte {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    let name = member.map_or(0, |member| member.name.bytes().map(escaped).sum());
    name + MEMBER_FRAME_BYTES
}

/// The request for a gateway with these features, signed again for every attempt: as a whole, or each sample.
pub(super) async fn batch_post(
    session: &Arc<Session>,
    job: &BatchJob,
    slots: &[usize],
    (signer, features): (BatchSigner, Features),
    demand: Option<Demand>,
) -> Result<BatchPost> {
    let samples = slots
        .iter()
        .map(|slot| (job.samples[*slot].index, job.routes.get(*slot)));
    let samples: Vec<(usize, SampleRoute)> = samples.collect();
    let (session, epoch) = (Arc::clone(session), job.epoch);
    let cpu = session.cpu.clone();
    // Thousands of signatures take milliseconds.
    let post = cpu.run(move || {
        let request = BatchRequest {
            demand,
            ..request(&session, &signer, &features, &samples, epoch)
        };
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
    let sample = |(index, route): &(usize, SampleRoute)| {
        let SampleRoute {
            split,
            is_cropped,
            max_bytes,
        } = *route;
        let object = session.objects.object(*index);
        let etag = object.etag.filter(|etag| has_cache && is_etag_hint(etag));
        let sample = BatchSample {
            split: (split != session.split).then_some(split),
            form: is_cropped.then_some(ObjectForm::CroppedJpeg),
            max_bytes,
            etag: etag.map(str::to_owned),
            ..signer.sample(object.key)
        };
        with_members(sample, &session.objects, *index)
    };
    let samples = samples.iter().map(sample).collect();
    let mut request = signer.request(session.pipeline.clone(), samples);
    request.split = session.split;
    request.seed = session.seed;
    request.epoch = Some(epoch);
    request.order = Order::Any;
    let columns = session.objects.columns().iter();
    request.columns = columns.map(|name| String::from(&**name)).collect();
    request.compression = session.compression;
    request.deliver = session.warm.is_none();
    request.pin = session.warm.and_then(WarmUp::pin);
    request.cache = has_cache.then(|| CacheHints {
        epochs: session.epochs_left(epoch),
        samples: session.objects.len() as u64,
    });
    request
}
