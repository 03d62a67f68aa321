//! What the result cache adds to a request: the lookup, without the store.

#![expect(clippy::unwrap_used, reason = "a failure to set up is a bug in the benchmark")]

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Uri, header};
use pushdown::{BytesKind, DType, Layout, Pipeline, Sample, Tensor};
use pushdown_gateway::testing::{
    CacheConfig, CacheSample, CacheUnit, Hints, Metrics, ObjectId, Prefixes, ResultCache, Scope, SourceHead,
    Tenant,
};

const PIPELINE: &str =
    "decode | resize(short=256) | center_crop(224) | to_float | normalize(imagenet) | cast(f16)";
const OBJECTS: usize = 10_000;
const VALUE_BYTES: usize = 2_560;

fn uri(index: usize) -> Uri {
    let path = format!(
        "/photos/train/n{:08}/photo_{index:08}.jpeg?X-Amz-Expires=900&X-Amz-Signature=00",
        index / 1300
    );
    path.parse().unwrap()
}

fn etag(index: usize) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{index:032x}\"")).unwrap()
}

/// A cache in memory with the values of the objects with an even number.
fn cache(prefixes: &Prefixes, host: &HeaderValue) -> ResultCache {
    let config = CacheConfig {
        pin_ratio: 0.5,
        memory_bytes: 256 << 20,
        disk: None,
        max_disk_entries: 0,
        objects_bytes: 64 << 20,
        scope: Scope::Shared,
        expiry: Duration::from_hours(24),
        auth_ttl: Duration::ZERO,
        max_age: Duration::ZERO,
        limits: pushdown::Limits::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let cache = runtime.block_on(config.build(Metrics::default())).unwrap();
    let value = Tensor::new(
        DType::U8,
        Layout::Flat,
        vec![VALUE_BYTES],
        vec![7_u8; VALUE_BYTES].into(),
    );
    let value = Sample::Tensor(value.unwrap());
    for index in (0..OBJECTS).step_by(2) {
        let answer = HeaderMap::from_iter([(header::ETAG, etag(index))]);
        let source = SourceHead::new(110_000, BytesKind::default(), &answer).unwrap();
        let sample = CacheSample {
            object: ObjectId::new(Some(host), &uri(index)),
            prefixes: prefixes.clone(),
            tenant: Tenant::default(),
            unit: CacheUnit::Object,
        };
        cache.remember(sample.object, &Arc::new(source.clone()));
        cache.observe_request(&sample, 6, None, None);
        let admission = cache
            .admit(&sample, 6, VALUE_BYTES as u64, Duration::from_millis(8))
            .unwrap();
        cache.insert(&sample, 6, &source, &value, admission);
    }
    cache
}

fn lookups(criterion: &mut Criterion) {
    let pipeline = Arc::new(Pipeline::parse(PIPELINE).unwrap());
    let (prefixes, host) = (Prefixes::new(pipeline), HeaderValue::from_static("store:9000"));
    let cache = cache(&prefixes, &host);
    let objects: Vec<_> = (0..OBJECTS).map(|index| (uri(index), etag(index))).collect();
    let mut group = criterion.benchmark_group("result cache");
    let lookup = |index: usize| {
        let (uri, etag) = &objects[index];
        let object = ObjectId::new(Some(&host), uri);
        let known = cache.known_object(&object);
        let sample = CacheSample {
            object,
            prefixes: prefixes.clone(),
            tenant: Tenant::default(),
            unit: CacheUnit::Object,
        };
        let candidate = cache.find(&sample, etag, 1..=6);
        cache.observe_request(
            &sample,
            6,
            Some(Hints {
                epochs: 2,
                samples: 10_000,
            }),
            None,
        );
        (known.is_some(), candidate.is_some())
    };
    assert_eq!((lookup(0), lookup(1)), ((true, true), (false, false)));
    for (name, first) in [("a value that is cached", 0), ("a value that is not cached", 1)] {
        let mut index = first;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                index = (index + 2) % OBJECTS;
                black_box(lookup(index))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, lookups);
criterion_main!(benches);
